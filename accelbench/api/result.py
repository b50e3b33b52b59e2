"""The result document: what one case found. `BenchmarkResult.result` in the cluster, `result.json` on a laptop.

At most 32 KiB (`MAXIMUM_BYTES`), so medians and quantiles per launch and no block series in full. Times are decimal
strings of seconds. A verdict stands only beside a certificate whose checks passed: the models refuse anything else.
"""

from typing import Literal, Self

from pydantic import model_validator

from accelbench.api.case import Case
from accelbench.document import DecimalString, Document

MAXIMUM_BYTES = 32 * 1024

Verdict = Literal["faster", "slower", "equivalent", "inconclusive"]
CheckOutcome = Literal["passed", "failed", "untested"]
FailureReason = Literal[
    "Raised",  # the variant's own code raised
    "OutOfMemory",
    "Killed",  # ended by a signal that we did not send
    "TimedOut",
    "InvalidOutput",  # the launch spoke garbage, or ended without an answer
    "Unsupported",  # the device, the mode or the precision is not to be had here
]
Phase = Literal["import", "device-init", "setup", "compile", "first-step", "warm-up", "steady"]
StopReason = Literal["target-met", "rounds-max", "time-limit", "interrupted", "nothing-to-compare"]


class Check(Document):
    """One validity check's reading. `untested` says why in `reading`; it is no pass and no failure."""

    name: str
    outcome: CheckOutcome
    reading: str
    threshold: str = ""
    variant: str | None = None
    """The variant that the check is about; none: it concerns all of them alike."""


class Certificate(Document):
    """Every validity check with its reading and threshold."""

    checks: tuple[Check, ...] = ()

    def failed(self, *variants: str) -> tuple[Check, ...]:
        """The failed checks that concern any of `variants`, those that concern every variant included."""
        return tuple(check for check in self.checks if check.outcome == "failed" and check.variant in {None, *variants})


class Failure(Document):
    """Why a variant has no measurement: a result like any other; the other variants' stand."""

    reason: FailureReason
    message: str
    round: int
    phase: Phase | None = None


class Quantiles(Document):
    """Five numbers of a sample, in seconds: what a box plot needs."""

    p5_seconds: DecimalString
    p25_seconds: DecimalString
    median_seconds: DecimalString
    p75_seconds: DecimalString
    p95_seconds: DecimalString


class PhaseTime(Document):
    """Seconds that a phase took: the median over launches, with the least and the most."""

    phase: Phase
    median_seconds: DecimalString
    min_seconds: DecimalString
    max_seconds: DecimalString


class LaunchSummary(Document):
    """One launch: seconds per unit (the median of its blocks) and how they spread."""

    round: int
    seconds: DecimalString
    p5_seconds: DecimalString | None = None
    p95_seconds: DecimalString | None = None
    blocks: int
    steps_per_block: int


class VariantResult(Document):
    """What was measured of one variant. Without `seconds` there is a `failure`, or no complete round."""

    name: str
    use: str
    failure: Failure | None = None
    seconds: Quantiles | None = None
    """Seconds per unit over the launches of complete rounds."""
    phases: tuple[PhaseTime, ...] = ()
    launches: tuple[LaunchSummary, ...] = ()
    flops_per_second: DecimalString | None = None
    peak_memory_bytes: int | None = None


class Comparison(Document):
    """A variant against the baseline: the speedup with its interval, and the verdict; or why there is none."""

    variant: str
    baseline: str
    rounds: int
    """Complete pairs of launches that the interval rests on."""
    confidence: DecimalString
    verdict: Verdict | None = None
    invalid: tuple[str, ...] = ()
    """Names of the checks that failed; then there is no speedup and no verdict."""
    speedup: DecimalString | None = None
    lower: DecimalString | None = None
    upper: DecimalString | None = None
    sentence: str
    """The finding in plain words."""

    @model_validator(mode="after")
    def _a_verdict_needs_an_interval_and_no_failed_check(self) -> Self:
        numbers = (self.speedup, self.lower, self.upper)
        if self.verdict is not None and (self.invalid or None in numbers):
            raise ValueError(f"{self.variant}: a verdict needs an interval and no failed check")
        if self.invalid and any(number is not None for number in numbers):
            raise ValueError(f"{self.variant}: an invalid comparison shows no speedup")
        return self


class Result(Document):
    """What one case found."""

    format: Literal["accelbench.dev/result/v1alpha1"] = "accelbench.dev/result/v1alpha1"
    case: Case
    complete: bool
    """False: interrupted, or a checkpoint; what is here is of complete rounds all the same."""
    stopped: StopReason | None = None
    unit: str
    """What one step is called: `step`, `epoch`, `product`."""
    started: str
    finished: str
    """RFC 3339, UTC."""
    rounds: int
    """Complete rounds."""
    variants: tuple[VariantResult, ...]
    comparisons: tuple[Comparison, ...] = ()
    certificate: Certificate = Certificate()
    fingerprint: dict[str, str] = {}
    overhead: dict[str, DecimalString] = {}
    """Where the case's wall seconds went: `total`, `steady` and what the rest was."""
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _a_verdict_needs_a_clean_certificate(self) -> Self:
        for comparison in self.comparisons:
            failed = self.certificate.failed(comparison.variant, comparison.baseline)
            if comparison.verdict is not None and (failed or not self.certificate.checks):
                names = ", ".join(check.name for check in failed) or "no certificate"
                raise ValueError(f"{comparison.variant}: no verdict can stand beside failed checks ({names})")
        return self

    @property
    def valid(self) -> bool:
        """Every comparison was made and none is invalid, no variant failed, and the case is complete."""
        return (
            self.complete
            and not any(comparison.invalid for comparison in self.comparisons)
            and not any(variant.failure for variant in self.variants)
        )
