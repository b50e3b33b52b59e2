"""The result document: what one case found. `BenchmarkResult.result` in the cluster, `result.json` on a laptop.

At most 256 KiB (`MAXIMUM_BYTES`), so medians and quantiles per launch and no block series in full. Times are decimal
strings of seconds. A verdict stands only beside a certificate whose checks passed: the models refuse anything else.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from accelbench import figures
from accelbench.api import rules
from accelbench.api.case import Case, Timestamp
from accelbench.api.compiled import Compiled
from accelbench.api.metadata import API_VERSION, ObjectMeta
from accelbench.api.numbers import Numbers
from accelbench.api.observation import Observations
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.run import Expectation
from accelbench.document import DecimalString, Document, Line, SixDigits, TimeString, rounded

MAXIMUM_BYTES = 256 * 1024
"""Of a result's JSON: 16 variants in 50 rounds take about 200 KiB; etcd takes 1.5 MB (docs/adr/0008)."""
MAXIMUM_MESSAGE = 1024
"""Characters in what is said of an expectation."""


def _moment(text: str) -> str:
    """`text`, where it is a time: the API server asks the same, and a file asks nobody."""
    datetime.fromisoformat(text)
    return text


Moment = Annotated[Timestamp, AfterValidator(_moment)]
Verdict = Literal["faster", "slower", "equivalent", "inconclusive"]
CheckOutcome = Literal["passed", "failed", "untested"]
Outcome = Literal["met", "not-met", "undecided"]
PaybackAnswer = Literal["at-once", "after", "never", "until"]
Phase = Literal["import", "device-init", "setup", "compile", "first-step", "warm-up", "steady"]
Bound = Literal["compute", "memory"]
COMPILED_PHASES: frozenset[Phase] = frozenset({"import", "device-init", "setup", "compile"})
"""That a launch goes through which compiles for a target."""
LimitsSource = Literal["data-sheet", "measured"]


class Check(Document):
    """One validity check's reading."""

    name: Line = Field(description="The check's name.")
    outcome: CheckOutcome = Field(description="untested: neither passed nor failed; the reading says why.")
    reading: Line = Field(description="What was found.")
    threshold: Line = Field(default="", description="What the reading is compared with.")
    variant: Line | None = Field(default=None, description="The variant that the check is about; none: all variants.")


class Certificate(Document):
    """Every validity check with its reading and threshold."""

    checks: tuple[Check, ...] = Field(default=(), description="Without checks there is no verdict.")

    def failed(self, *variants: str) -> tuple[Check, ...]:
        """The failed checks that concern any of `variants`, those that concern every variant included."""
        return tuple(check for check in self.checks if check.outcome == "failed" and check.variant in {None, *variants})


class Failure(Document):
    """Why a variant has no measurement: a result like any other; the other variants' stand."""

    reason: FailureReason = Field(description="The reason in one word, for programs.")
    message: Line = Field(description="What happened and what to do, for people.")
    round: int = Field(ge=0, description="The round in which it happened.")
    phase: Phase | None = Field(default=None, description="The last phase that the launch had reached.")


class Quantiles(Document):
    """A variant's time, and five numbers of its launches beside it: what a box plot needs. In seconds."""

    geometric_mean_seconds: TimeString = Field(
        description="The variant's time, the only one that is shown: the geometric mean over launches of each launch's "
        "median block. The speedup is the ratio of two such times over the same rounds."
    )
    p5_seconds: SixDigits
    p25_seconds: SixDigits
    median_seconds: SixDigits
    p75_seconds: SixDigits
    p95_seconds: SixDigits


class PhaseTime(Document):
    """Seconds that a phase took: the median over launches, with the least and the most."""

    phase: Phase
    median_seconds: SixDigits
    min_seconds: SixDigits
    max_seconds: SixDigits
    parts: dict[Line, SixDigits] = Field(
        default={},
        description="Seconds of the parts of compile, median over launches: trace, lower, backend; dynamo, backend.",
    )


class LaunchSummary(Document):
    """One launch: seconds per unit (the median of its blocks) and how they spread."""

    round: int = Field(description="The round that it belongs to, from 1.")
    seconds: TimeString = Field(description="Seconds per unit.")
    p5_seconds: SixDigits | None = Field(default=None, description="5 % of the blocks were faster.")
    p95_seconds: SixDigits | None = Field(default=None, description="5 % of the blocks were slower.")
    blocks: int = Field(description="How many blocks were timed.")
    units_per_block: int = Field(description="Units of work in a block.")
    p99_seconds: TimeString | None = Field(
        default=None, description="Seconds per unit that 1 % of the calls exceeded; only for protocol latency."
    )


class OutlierCounts(Document):
    """How many values lie beyond Tukey's fences, 1.5 (mild) and 3 times (severe) the quartiles' distance; all count."""

    of: int = Field(description="How many values there are.")
    low_severe: int = 0
    low_mild: int = 0
    high_mild: int = 0
    high_severe: int = 0


class Spread(Document):
    """How a variant's times spread, over the launches that count."""

    block_outliers: OutlierCounts = Field(description="Outliers among all blocks, by the fences of their launch.")
    launch_outliers: OutlierCounts = Field(description="Outliers among the launches' medians.")
    between_launches: Annotated[DecimalString, rounded(2)] | None = Field(
        default=None,
        description="Share of the blocks' variance that is between launches, 0 to 1; the rest is within launches.",
    )
    effective_blocks: Annotated[DecimalString, rounded(3)] | None = Field(
        default=None,
        description="How many independent blocks the blocks of a launch are worth: the median over launches.",
    )
    lower_seconds: TimeString | None = Field(
        default=None,
        description="Lower end of the interval of the variant's own time, over its launches, at the case's confidence. "
        "It is not paired, so it includes what slows the whole machine for a while. None with one launch.",
    )
    upper_seconds: TimeString | None = Field(default=None, description="The interval's upper end.")


class VariantResult(Document):
    """What was measured of one variant.

    Without `seconds` there is a `failure`, or no complete round, or a check rejected it: then nothing timed is kept.
    """

    name: Line = Field(description="Unique in the run.")
    use: Line = Field(description="Framework and mode.")
    failure: Failure | None = None
    seconds: Quantiles | None = Field(
        default=None, description="Seconds per unit over the launches of complete rounds."
    )
    phases: tuple[PhaseTime, ...] = Field(default=(), description="What a launch spends on each phase.")
    warm_phases: tuple[PhaseTime, ...] = Field(
        default=(), description="compile and first-step again, in a new process with the caches that a launch left."
    )
    launches: tuple[LaunchSummary, ...] = Field(default=(), description="The launches of complete rounds.")
    spread: Spread | None = None
    numbers: Numbers = Field(default=Numbers(), description="All its numbers.")
    bound: Bound | None = Field(
        default=None,
        description="The limit that binds; memory only if the working set exceeds four last-level caches.",
    )
    limits: LimitsSource | None = Field(
        default=None,
        description="Where the limits come from; measured: the best product and triad of any launch of the case.",
    )


class Payback(Document):
    """When a variant's first call has paid for itself: its total time, first call and steps, below the baseline's."""

    answer: PaybackAnswer = Field(
        description="By the estimate. at-once: from the first step; after: after so many steps; never; until: ahead "
        "for so many steps. Of after and never with a lower end alone, launches do not tell whether it ever pays back."
    )
    steps: int | None = Field(default=None, description="The estimate, where the answer is after or until.")
    lower: int | None = Field(default=None, description="The fewest steps that fit the launches.")
    upper: int | None = Field(
        default=None, description="The most steps that fit the launches; none: there is no limit."
    )
    first_call_seconds: SixDigits = Field(
        description="The variant's compile and first-step on a cold cache, minus a call at the steady speed."
    )
    extra_seconds: SixDigits = Field(description="How much more that is than the baseline's; below 0: less.")


class SpeedupEstimate(Document):
    """A variant's speedup over the baseline so far, or the checks for which there is none."""

    variant: Line = Field(description="The variant's name.")
    verdict: Verdict | None = None
    noisy: bool = Field(
        default=False, description="Rounds that other load disturbed count: there is an interval, but no verdict."
    )
    invalid: tuple[Line, ...] = Field(
        default=(), description="Names of the checks that failed; then there is no speedup and no verdict."
    )
    speedup: DecimalString | None = Field(default=None, description="Baseline seconds / variant seconds.")
    lower: DecimalString | None = Field(default=None, description="The interval's lower end.")
    upper: DecimalString | None = Field(default=None, description="The interval's upper end.")


class Comparison(SpeedupEstimate):
    """A variant against the baseline: the speedup with its interval, and the verdict; or why there is none.

    The judge makes it, and every part of accelbench passes it on as it is. Where a document holds estimates, such as a
    headline, a comparison is written as one.
    """

    baseline: Line = Field(description="The baseline's name.")
    rounds: int = Field(ge=0, description="Complete pairs of launches behind the interval.")
    confidence: DecimalString = Field(description="Confidence of this interval; the run's comparisons share the error.")
    pays_back: Payback | None = Field(
        default=None, description="When compiling pays back; none: not known, or the comparison is invalid."
    )
    sentence: Line = Field(description="The finding in plain words.")
    quantity: Literal["p50", "p99"] | None = Field(
        default=None, description="The quantile of a launch's calls that is compared, if the protocol is latency."
    )

    @model_validator(mode="after")
    def _a_verdict_needs_an_interval_and_no_failed_check(self) -> Self:
        numbers = (self.speedup, self.lower, self.upper)
        if self.verdict is not None and (self.invalid or None in numbers):
            raise ValueError(f"{self.variant}: a verdict needs an interval and no failed check")
        if self.invalid and any(number is not None for number in numbers):
            raise ValueError(f"{self.variant}: an invalid comparison shows no speedup")
        shown = [float(number) for number in (self.lower, self.speedup, self.upper) if number is not None]
        if shown != sorted(shown) or min(shown, default=1) <= 0:
            raise ValueError(f"{self.variant}: a speedup is above 0 and within its interval")
        if self.noisy and (self.verdict or self.invalid):
            raise ValueError(f"{self.variant}: a noisy comparison has an interval, and no verdict")
        return self

    @property
    def headline(self) -> str:
        """The finding in a few words: `jax/jit faster 2.04x (2.01 to 2.07)`."""
        if self.speedup is None or self.lower is None or self.upper is None:
            return f"{self.variant} {'invalid: ' + ', '.join(self.invalid) if self.invalid else 'not compared'}"
        interval = figures.interval(float(self.lower), float(self.upper))
        said = self.verdict or ("noisy" if self.noisy else "no verdict")
        return f"{self.variant} {said} {figures.speedup(float(self.speedup))} ({interval})"


def ranked(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons with the surest gain first, by the lower end of the interval."""
    return tuple(sorted(comparisons, key=lambda comparison: -float(comparison.lower or 0)))


class Disturbed(Document):
    """A round that something outside the variants disturbed."""

    round: int = Field(description="The round's number, from 1.")
    reasons: tuple[Line, ...] = Field(description="Which check noticed, for which variant, and its reading.")


class Quarantined(Disturbed):
    """A disturbed round that counts for no variant, and was measured again."""


class Result(Document):
    """What one case found."""

    format: Literal["accelbench.dev/result/v1alpha1"] = "accelbench.dev/result/v1alpha1"
    case: Case
    complete: bool = Field(
        description="False: interrupted, or a checkpoint; the numbers still come from complete rounds only."
    )
    stopped: StopReason | None = Field(default=None, description="Why no further round was measured.")
    unit: Line = Field(description="What one step is called: step, epoch, product.")
    started: Moment = Field(description="When the first launch began.")
    finished: Moment = Field(description="When the last launch ended.")
    rounds: int = Field(ge=0, description="Complete rounds that count.")
    quarantined: tuple[Quarantined, ...] = Field(
        default=(), description="Rounds that were disturbed and discarded; if all were, no comparison is valid."
    )
    noisy: tuple[Disturbed, ...] = Field(
        default=(),
        description="Disturbed rounds that count, because the case accepts noise; with any, there is no verdict.",
    )
    variants: tuple[VariantResult, ...] = Field(description="What was measured of each variant.")
    protocol: Literal["steady", "latency", "episode", "observe", "compile"] | None = Field(
        default=None, description="How steps were measured; times of different protocols are never compared."
    )
    comparisons: tuple[Comparison, ...] = Field(default=(), description="Each other variant against the baseline.")
    tail_comparisons: tuple[Comparison, ...] = Field(
        default=(), description="The same for the 99th percentile, if the protocol is latency; they share the alpha."
    )
    observations: tuple[Observations, ...] = Field(
        default=(), description="What was observed for each variant, if the protocol is observe: nothing is timed."
    )
    compiled: tuple[Compiled, ...] = Field(
        default=(),
        description="How compiling each variant for the case's target ended: nothing ran, so no time is known.",
    )
    certificate: Certificate = Certificate()
    fingerprint: dict[Line, Line] = Field(default={}, description="Versions, hardware and settings.")
    overhead: dict[Line, Annotated[DecimalString, rounded(4)]] = Field(
        default={}, description="Where the case's wall seconds went: `total`, `steady`, and the rest by name."
    )
    notes: tuple[Line, ...] = Field(default=(), description="What else a reader should know.")

    @model_validator(mode="after")
    def _a_verdict_needs_a_clean_certificate(self) -> Self:
        for comparison in (*self.comparisons, *self.tail_comparisons):
            failed = self.certificate.failed(comparison.variant, comparison.baseline)
            if comparison.verdict is not None and (failed or not self.certificate.checks):
                names = ", ".join(check.name for check in failed) or "no certificate"
                raise ValueError(f"{comparison.variant}: no verdict can stand beside failed checks ({names})")
            if comparison.verdict is not None and self.noisy:
                raise ValueError(f"{comparison.variant}: no verdict can stand beside disturbed rounds that count")
        return self

    @model_validator(mode="after")
    def _each_variant_of_the_case_stands_once(self) -> Self:
        asked = [variant.name for variant in self.case.variants]
        for what, names in (
            ("variants", [variant.name for variant in self.variants]),
            ("comparisons", [comparison.variant for comparison in self.comparisons]),
            ("tailComparisons", [comparison.variant for comparison in self.tail_comparisons]),
            ("observations", [observations.variant for observations in self.observations]),
            ("compiled", [compiled.variant for compiled in self.compiled]),
        ):
            for name in names:
                if names.count(name) > 1 or name not in asked:
                    raise ValueError(f"{what}: {name} is there twice or is no variant of the case")
        return self

    @model_validator(mode="after")
    def _what_is_compiled_has_no_time(self) -> Self:
        """But what compiling took: a time of the program, and all that is made from one, is refused."""
        if self.case.accelerator.target is None and self.protocol != "compile" and not self.compiled:
            return self
        if self.comparisons or self.tail_comparisons or self.observations:
            raise ValueError("a case that is compiled for a target has no comparison: no speedup can be known")
        for variant in self.variants:
            phases = {each.phase for each in (*variant.phases, *variant.warm_phases)} - COMPILED_PHASES
            timed = variant.seconds or variant.launches or variant.spread or phases or variant.bound or variant.limits
            if timed or variant.numbers != variant.numbers.without_timed():
                raise ValueError(f"{variant.name}: a case that is compiled for a target did not run: it has no time")
        return self

    @property
    def ranked(self) -> tuple[Comparison, ...]:
        """The comparisons, the one to read first at the head, whatever their order in the manifest.

        That is the variant which is surely the fastest, by the lower end of its interval: the one to choose, and no
        headline about another can hide it. A wide interval with a high estimate establishes less. Those without an
        interval come last, as the manifest lists them.
        """
        return ranked(self.comparisons)

    @property
    def valid(self) -> bool:
        """Every comparison has a verdict and none is invalid, no variant failed, and the case is complete.

        What was measured alone has its time. Where the protocol is observe, nothing is compared, and every check has
        to hold.
        """
        return (
            self.complete
            and not any(comparison.invalid or comparison.verdict is None for comparison in self.comparisons)
            and not self.failed_variants
            and not self.untimed_variants
            and not self.refuted_observations
        )

    @property
    def failed_variants(self) -> tuple[VariantResult, ...]:
        """Those whose failure is a shortcoming of the result.

        That a variant cannot be compiled for a target is an answer, as long as another one can.
        """
        failed = tuple(variant for variant in self.variants if variant.failure)
        if not self.compiled:
            return failed
        return tuple(each for each in failed if each.failure and each.failure.reason != FailureReason.UNSUPPORTED)

    @property
    def untimed_variants(self) -> tuple[VariantResult, ...]:
        """Those of a case without comparisons that did not fail, and have no time that counts all the same."""
        if self.comparisons or self.compiled or self.protocol == "observe":
            return ()
        return tuple(each for each in self.variants if not each.failure and not each.seconds)

    @property
    def refuted_observations(self) -> bool:
        """Something was observed, and a check failed: what was observed is not what was asked for."""
        return self.protocol == "observe" and any(check.outcome == "failed" for check in self.certificate.checks)

    @property
    def headline(self) -> str:
        """The finding in a few words: `jax/jit faster 2.04x (2.01 to 2.07)`, one part for each comparison."""
        failed = [f"{variant.name} failed: {variant.failure.reason}" for variant in self.variants if variant.failure]
        found = [
            *(comparison.headline for comparison in self.ranked),
            *(each.headline for each in self.observations),
            *(each.headline for each in self.compiled),
        ]
        return "; ".join([*found, *failed]) or "no comparison"


class JudgedExpectation(Expectation):
    """What became of one of the run's expectations in this case."""

    outcome: Outcome = Field(description="undecided: the measurement supports neither.")
    message: str = Field(max_length=MAXIMUM_MESSAGE, description="What was found, with the numbers.")


class ResultSummary(Document):
    """What `kubectl get` shows of a result, and what the cluster knows of where it came from."""

    valid: bool = Field(description="Complete, every comparison valid, no variant failed.")
    headline: Line = Field(description="The finding in a few words.")
    node: Line | None = Field(default=None, description="The node that it was measured on.")
    pod: Line | None = Field(default=None, description="The pod that measured it.")
    image: Line | None = Field(default=None, description="The pod's image, by digest if the node reports one.")


class BenchmarkResult(Document):
    """What one case of a BenchmarkRun found: stored once, and never changed. It can outlive its run."""

    api_version: Literal["accelbench.dev/v1alpha1"] = API_VERSION
    kind: Literal["BenchmarkResult"] = "BenchmarkResult"
    metadata: ObjectMeta
    # None can be left out: what is required cannot be taken away, or added, where nothing may change.
    summary: Annotated[ResultSummary, rules.RESULT_IS_FINAL]
    expectations: Annotated[tuple[JudgedExpectation, ...], rules.RESULT_IS_FINAL] = Field(
        max_length=32, description="The run's expectations of this case, judged by the operator."
    )
    result: Annotated[Result, rules.RESULT_IS_FINAL]

    @classmethod
    def of(
        cls,
        result: Result,
        metadata: ObjectMeta,
        expectations: Iterable[JudgedExpectation] = (),
        *,
        node: str | None = None,
        pod: str | None = None,
        image: str | None = None,
    ) -> Self:
        """The object that stores `result`, and where that came from."""
        summary = ResultSummary(valid=result.valid, headline=result.headline, node=node, pod=pod, image=image)
        return cls(metadata=metadata, summary=summary, expectations=tuple(expectations), result=result)
