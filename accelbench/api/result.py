"""Define the result document of a case: `BenchmarkResult.result` in the cluster, `result.json` on a laptop.

A result has at most 256 KiB (`MAXIMUM_BYTES`), so it has medians and quantiles of each launch, not all blocks. Times
are decimal strings of seconds. The models refuse a verdict without a certificate whose checks passed.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from accelbench import figures
from accelbench.api import rules
from accelbench.api.case import Case, Timestamp
from accelbench.api.compiled import CompiledVariant
from accelbench.api.metadata import API_VERSION, ObjectMeta
from accelbench.api.numbers import Numbers
from accelbench.api.observation import Observations
from accelbench.api.operation_times import OperationTimes
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.run import Expectation
from accelbench.document import DecimalString, Document, Line, SixDigits, TimeString, round_to_digits

MAXIMUM_BYTES = 256 * 1024
"""Maximum size of a result's JSON: 16 variants in 50 rounds take about 200 KiB; etcd takes 1.5 MB (docs/adr/0008)."""
MAXIMUM_MESSAGE = 1024
"""Maximum number of characters in the message of an expectation."""


def _check_time(text: str) -> str:
    """Return `text` if it is an ISO 8601 time, else raise ValueError.

    The schema in the API server checks this too, but not for a result that comes from a file.
    """
    datetime.fromisoformat(text)
    return text


Moment = Annotated[Timestamp, AfterValidator(_check_time)]
Verdict = Literal["faster", "slower", "equivalent", "inconclusive"]
CheckOutcome = Literal["passed", "failed", "untested"]
Outcome = Literal["met", "not-met", "undecided"]
PaybackAnswer = Literal["at-once", "after", "never", "until"]
Phase = Literal["import", "device-init", "setup", "compile", "first-step", "warm-up", "steady"]
Bound = Literal["compute", "memory"]
COMPILED_PHASES: frozenset[Phase] = frozenset({"import", "device-init", "setup", "compile"})
"""Phases of a launch that compiles for a target."""
LimitsSource = Literal["data-sheet", "measured"]


class Check(Document):
    """Report one validity check's reading."""

    name: Line = Field(description="The check's name.")
    outcome: CheckOutcome = Field(description="untested: neither passed nor failed; the reading has the reason.")
    reading: Line = Field(description="What was measured, or why it is untested.")
    threshold: Line = Field(default="", description="What the reading is compared with.")
    variant: Line | None = Field(default=None, description="The variant that the check is about; none: all variants.")


class Certificate(Document):
    """List every validity check with its reading and threshold."""

    checks: tuple[Check, ...] = Field(default=(), description="Without checks there is no verdict.")

    def failed_checks(self, *variants: str) -> tuple[Check, ...]:
        """Return the failed checks that concern one of `variants`. A check without a variant concerns all variants."""
        failed = [check for check in self.checks if check.outcome == "failed"]
        return tuple(check for check in failed if check.variant is None or check.variant in variants)


class Failure(Document):
    """Report why a variant has no measurement; the results of other variants still count."""

    reason: FailureReason = Field(description="The reason in one word, for programs.")
    message: Line = Field(description="What happened and what to do, for people.")
    round: int = Field(ge=0, description="The round in which it happened; 0: before the first one.")
    phase: Phase | None = Field(default=None, description="The last phase that the launch had reached.")

    @property
    def when(self) -> str:
        """Return when it happened, as a part of a sentence: `in round 2`, or `before the first round`."""
        return f"in round {self.round}" if self.round else "before the first round"


class Quantiles(Document):
    """Hold a variant's time, and quantiles of its launches, in seconds per unit of work."""

    geometric_mean_seconds: TimeString = Field(
        description="The variant's time, the only one that is shown: the geometric mean over launches of each launch's "
        "median block. The speedup is the ratio of two such times over the same rounds."
    )
    p5_seconds: SixDigits = Field(description="5 % of the launches were faster.")
    p25_seconds: SixDigits = Field(description="25 % of the launches were faster.")
    median_seconds: SixDigits = Field(description="Half of the launches were faster.")
    p75_seconds: SixDigits = Field(description="25 % of the launches were slower.")
    p95_seconds: SixDigits = Field(description="5 % of the launches were slower.")


class PhaseTime(Document):
    """Hold a phase's duration in seconds: the median over launches, with minimum and maximum."""

    phase: Phase = Field(description="The phase of a launch.")
    median_seconds: SixDigits = Field(description="Median over launches.")
    min_seconds: SixDigits = Field(description="Shortest of all launches.")
    max_seconds: SixDigits = Field(description="Longest of all launches.")
    parts: dict[Line, SixDigits] = Field(
        default={},
        description="Seconds of the parts of compile, median over launches: trace, lower, backend; dynamo, backend.",
    )


class LaunchSummary(Document):
    """Hold one launch's seconds per unit (the median of its blocks) and their spread."""

    round: int = Field(description="The round that it belongs to, from 1.")
    seconds: TimeString = Field(description="Seconds per unit.")
    p5_seconds: SixDigits | None = Field(default=None, description="5 % of the blocks were faster.")
    p95_seconds: SixDigits | None = Field(default=None, description="5 % of the blocks were slower.")
    blocks: int = Field(description="How many blocks were timed.")
    units_per_block: int = Field(description="Units of work in a block.")
    p99_seconds: TimeString | None = Field(
        default=None, description="Seconds per unit that 1 % of the calls exceeded; for protocol latency and arrivals."
    )


class OutlierCounts(Document):
    """Count values beyond Tukey's fences, 1.5 (mild) and 3 (severe) interquartile ranges; none is dropped."""

    of: int = Field(description="How many values there are.")
    low_severe: int = Field(default=0, description="More than 3 interquartile ranges below the lower quartile.")
    low_mild: int = Field(default=0, description="1.5 to 3 interquartile ranges below the lower quartile.")
    high_mild: int = Field(default=0, description="1.5 to 3 interquartile ranges above the upper quartile.")
    high_severe: int = Field(default=0, description="More than 3 interquartile ranges above the upper quartile.")


class Spread(Document):
    """Describe the spread of a variant's times, over the launches that count."""

    block_outliers: OutlierCounts = Field(description="Outliers among all blocks, by the fences of their launch.")
    launch_outliers: OutlierCounts = Field(description="Outliers among the launches' medians.")
    between_launches: Annotated[DecimalString, round_to_digits(2)] | None = Field(
        default=None,
        description="Share of the blocks' variance that is between launches, 0 to 1; the rest is within launches.",
    )
    effective_blocks: Annotated[DecimalString, round_to_digits(3)] | None = Field(
        default=None,
        description="How many independent blocks the blocks of a launch are worth: the median over launches.",
    )
    lower_seconds: TimeString | None = Field(
        default=None,
        description="Lower end of the interval of the variant's own time, over its launches, at the case's confidence. "
        "It is not paired, so it includes what slows the whole machine for a while. None with one launch.",
    )
    upper_seconds: TimeString | None = Field(default=None, description="The interval's upper end.")
    lower_p99_seconds: TimeString | None = Field(
        default=None,
        description="Lower end of the same interval of the 99th percentile, for protocol latency and arrivals.",
    )
    upper_p99_seconds: TimeString | None = Field(default=None, description="The interval's upper end.")


class VariantResult(Document):
    """Report what was measured of one variant.

    Without `seconds` there is a `failure`, or no complete round, or a check rejected the variant; its timings are
    removed.
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
    operation_times: OperationTimes | None = Field(
        default=None, description="The operations that take most of a call, if measurement.explain asked for them."
    )


class Payback(Document):
    """Report when a variant's first call has paid for itself: its total time is then below the baseline's."""

    answer: PaybackAnswer = Field(
        description="By the estimate. at-once: from the first step; after: after this many steps; never; until: ahead "
        "for this many steps, then behind. With only a lower end, it is uncertain whether it ever pays back."
    )
    steps: int | None = Field(default=None, description="The estimate, where the answer is after or until.")
    lower: int | None = Field(default=None, description="The fewest steps that fit the launches.")
    upper: int | None = Field(
        default=None, description="The most steps that fit the launches; none: there is no limit."
    )
    first_call_seconds: SixDigits = Field(
        description="The variant's compile and first-step on a cold cache, minus a call at the steady speed."
    )
    extra_seconds: SixDigits = Field(description="The difference to the baseline's; below 0: less.")


class SpeedupEstimate(Document):
    """Report a variant's speedup over the baseline so far, or the checks that failed."""

    variant: Line = Field(description="The variant's name.")
    verdict: Verdict | None = Field(
        default=None,
        description="The verdict on the variant; none if the comparison is invalid, noisy or not complete.",
    )
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
    """Compare a variant with the baseline: the speedup with its interval and the verdict, or why there is none.

    The judge makes it, and every part of accelbench passes it on unchanged, also where a SpeedupEstimate is expected.
    """

    baseline: Line = Field(description="The baseline's name.")
    rounds: int = Field(ge=0, description="Complete pairs of launches behind the interval.")
    confidence: DecimalString = Field(description="Confidence of this interval; the run's comparisons share the error.")
    pays_back: Payback | None = Field(
        default=None, description="When compiling pays back; none: not known, or the comparison is invalid."
    )
    sentence: Line = Field(description="The finding in plain words.")
    quantity: Literal["p50", "p99"] | None = Field(
        default=None,
        description="The quantile of a launch's calls that is compared, if the protocol is latency or arrivals.",
    )

    @model_validator(mode="after")
    def _refuse_contradictions(self) -> Self:
        """Refuse a comparison whose fields contradict each other."""
        texts_in_order = (self.lower, self.speedup, self.upper)
        values = [float(text) for text in texts_in_order if text is not None]
        has_interval = len(values) == len(texts_in_order)
        if self.verdict is not None and (self.invalid or not has_interval):
            raise ValueError(f"{self.variant}: a verdict needs an interval and no failed check")
        if self.invalid and values:
            raise ValueError(f"{self.variant}: an invalid comparison shows no speedup")
        if values != sorted(values) or any(value <= 0 for value in values):
            raise ValueError(f"{self.variant}: a speedup is above 0 and within its interval")
        if self.noisy and (self.verdict or self.invalid):
            raise ValueError(f"{self.variant}: a noisy comparison has an interval, but no verdict")
        return self

    @property
    def headline(self) -> str:
        """Return the result in a few words: `jax/jit faster 2.04x (2.01 to 2.07)`."""
        if self.speedup is None or self.lower is None or self.upper is None:
            if self.invalid:
                return f"{self.variant} invalid: {', '.join(self.invalid)}"
            return f"{self.variant} not compared"
        why_no_verdict = "noisy" if self.noisy else "no verdict"
        verdict = self.verdict or why_no_verdict
        interval = figures.interval(float(self.lower), float(self.upper))
        return f"{self.variant} {verdict} {figures.speedup(float(self.speedup))} ({interval})"


def rank_comparisons(comparisons: Iterable[Comparison]) -> tuple[Comparison, ...]:
    """Return the comparisons from fastest to slowest variant, by the lower end of the speedup's interval.

    Comparisons without an interval are last.
    """
    # A lower end is above 0, so 0 is below all of them.
    return tuple(sorted(comparisons, key=lambda comparison: float(comparison.lower or 0), reverse=True))


class Disturbed(Document):
    """Report a round that other load disturbed."""

    round: int = Field(description="The round's number, from 1.")
    reasons: tuple[Line, ...] = Field(description="Which check noticed, for which variant, and its reading.")


class Quarantined(Disturbed):
    """Report a disturbed round that counts for no variant and was measured again."""


class Result(Document):
    """Report the result of one case."""

    format: Literal["accelbench.dev/result/v1alpha1"] = "accelbench.dev/result/v1alpha1"
    case: Case
    complete: bool = Field(
        description="False: interrupted, or a checkpoint; the numbers still come from complete rounds only."
    )
    stopped: StopReason | None = Field(default=None, description="Why no further round was measured.")
    unit: Line = Field(description="Name of a unit of work: step, epoch, product.")
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
    protocol: Literal["steady", "latency", "arrivals", "episode", "observe", "compile"] | None = Field(
        default=None, description="How steps were measured; times of different protocols are never compared."
    )
    comparisons: tuple[Comparison, ...] = Field(default=(), description="Each other variant against the baseline.")
    tail_comparisons: tuple[Comparison, ...] = Field(
        default=(),
        description="The same for the 99th percentile, if the protocol is latency or arrivals; they share the alpha.",
    )
    observations: tuple[Observations, ...] = Field(
        default=(), description="What was observed for each variant, if the protocol is observe: nothing is timed."
    )
    compiled: tuple[CompiledVariant, ...] = Field(
        default=(),
        description="How compiling each variant for the case's target ended: nothing ran, so no time is known.",
    )
    certificate: Certificate = Certificate()
    fingerprint: dict[Line, Line] = Field(default={}, description="Versions, hardware and settings.")
    overhead: dict[Line, Annotated[DecimalString, round_to_digits(4)]] = Field(
        default={}, description="Where the case's wall seconds went: `total`, `steady`, and the rest by name."
    )
    notes: tuple[Line, ...] = Field(default=(), description="What else a reader should know.")

    @model_validator(mode="after")
    def _refuse_verdict_despite_checks(self) -> Self:
        """Refuse a verdict that the checks or the noise forbid."""
        for comparison in (*self.comparisons, *self.tail_comparisons):
            if comparison.verdict is None:
                continue
            failed_checks = self.certificate.failed_checks(comparison.variant, comparison.baseline)
            if failed_checks or not self.certificate.checks:
                names = ", ".join(check.name for check in failed_checks) or "no certificate"
                raise ValueError(f"{comparison.variant}: a verdict is not possible with failed checks ({names})")
            if self.noisy:
                raise ValueError(f"{comparison.variant}: a verdict is not possible if disturbed rounds count")
        return self

    @model_validator(mode="after")
    def _refuse_repeated_or_unknown_variants(self) -> Self:
        """Refuse a field that lists a variant twice or an unknown variant."""
        case_variants = [variant.name for variant in self.case.variants]
        for field, names in (
            ("variants", [variant.name for variant in self.variants]),
            ("comparisons", [comparison.variant for comparison in self.comparisons]),
            ("tailComparisons", [comparison.variant for comparison in self.tail_comparisons]),
            ("observations", [observations.variant for observations in self.observations]),
            ("compiled", [compiled.variant for compiled in self.compiled]),
        ):
            for name in names:
                if names.count(name) > 1 or name not in case_variants:
                    raise ValueError(f"{field}: {name} occurs twice or is not a variant of the case")
        return self

    @model_validator(mode="after")
    def _refuse_times_of_compiled_case(self) -> Self:
        """Refuse times in a case that only compiles."""
        is_measured = self.case.accelerator.target is None and self.protocol != "compile" and not self.compiled
        if is_measured:
            return self
        if self.comparisons or self.tail_comparisons or self.observations:
            raise ValueError("a case that is compiled for a target has no comparison: no speedup can be known")
        for variant in self.variants:
            phases = {time.phase for time in (*variant.phases, *variant.warm_phases)}
            has_time = (
                variant.seconds
                or variant.launches
                or variant.spread
                or variant.bound
                or variant.limits
                or variant.operation_times
                or phases - COMPILED_PHASES
                or variant.numbers != variant.numbers.without_timed()  # a number that derives from a time is set
            )
            if has_time:
                raise ValueError(f"{variant.name}: a case that is compiled for a target did not run: it has no time")
        return self

    @property
    def ranked_comparisons(self) -> tuple[Comparison, ...]:
        """Return the comparisons from fastest to slowest variant, by the lower end of the speedup's interval."""
        return rank_comparisons(self.comparisons)

    @property
    def valid(self) -> bool:
        """Return True if the case is complete, no variant or observation failed, and every comparison has a verdict."""
        have_verdicts = all(comparison.verdict and not comparison.invalid for comparison in self.comparisons)
        return (
            self.complete
            and have_verdicts
            and not self.failed_variants
            and not self.untimed_variants
            and not self.has_refuted_observations
        )

    @property
    def failed_variants(self) -> tuple[VariantResult, ...]:
        """Return the variants whose failure makes the result invalid."""
        # If the case was compiled for a target, it is a valid answer that the target does not support a variant.
        valid_reasons = {FailureReason.UNSUPPORTED} if self.compiled else set()
        return tuple(
            variant for variant in self.variants if variant.failure and variant.failure.reason not in valid_reasons
        )

    @property
    def untimed_variants(self) -> tuple[VariantResult, ...]:
        """Return the variants without a time, if neither a failure nor a comparison says why they have none.

        A case that compiles or observes has no times, so nothing is missing.
        """
        if self.comparisons or self.compiled or self.protocol == "observe":
            return ()
        return tuple(variant for variant in self.variants if not variant.failure and not variant.seconds)

    @property
    def has_refuted_observations(self) -> bool:
        """Return True if a check shows that the observations are wrong."""
        return self.protocol == "observe" and any(check.outcome == "failed" for check in self.certificate.checks)

    @property
    def headline(self) -> str:
        """Return the results of all variants on one line."""
        findings = [comparison.headline for comparison in self.ranked_comparisons]
        findings += [observations.headline for observations in self.observations]
        findings += [compiled.headline for compiled in self.compiled]
        findings += [f"{variant.name} failed: {variant.failure.reason}" for variant in self.variants if variant.failure]
        return "; ".join(findings) or "no comparison"


class JudgedExpectation(Expectation):
    """Report the outcome of one of the run's expectations in this case."""

    outcome: Outcome = Field(description="undecided: the measurement supports neither.")
    message: str = Field(max_length=MAXIMUM_MESSAGE, description="The outcome in a sentence, with the numbers.")


class ResultSummary(Document):
    """Summarise a result for `kubectl get`, with the pod that measured it."""

    valid: bool = Field(description="Complete, every comparison valid, no variant failed.")
    headline: Line = Field(description="The finding in a few words.")
    node: Line | None = Field(default=None, description="The node that it was measured on.")
    pod: Line | None = Field(default=None, description="The pod that measured it.")
    image: Line | None = Field(default=None, description="The pod's image, by digest if the node reports one.")


class BenchmarkResult(Document):
    """Store what one case of a BenchmarkRun found; it never changes and can outlive its run."""

    api_version: Literal["accelbench.dev/v1alpha1"] = API_VERSION
    kind: Literal["BenchmarkResult"] = "BenchmarkResult"
    metadata: ObjectMeta
    # All fields are required, because the API server does not check RESULT_IS_FINAL if a field is added or removed.
    summary: Annotated[ResultSummary, rules.RESULT_IS_FINAL]
    expectations: Annotated[tuple[JudgedExpectation, ...], rules.RESULT_IS_FINAL] = Field(
        max_length=32, description="The run's expectations of this case, judged by the operator."
    )
    result: Annotated[Result, rules.RESULT_IS_FINAL]

    @classmethod
    def from_result(
        cls,
        result: Result,
        metadata: ObjectMeta,
        expectations: Iterable[JudgedExpectation] = (),
        *,
        node: str | None = None,
        pod: str | None = None,
        image: str | None = None,
    ) -> Self:
        """Return the object that stores `result`, with a summary that names the pod that measured it."""
        summary = ResultSummary(valid=result.valid, headline=result.headline, node=node, pod=pod, image=image)
        return cls(metadata=metadata, summary=summary, expectations=tuple(expectations), result=result)
