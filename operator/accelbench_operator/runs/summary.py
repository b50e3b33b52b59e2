"""Hold the headline of a BenchmarkResult: all that the operator keeps of one in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accelbench.api.reasons import FailureReason
from accelbench.api.result import Comparison
from accelbench_operator.engine.kinds import Key


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """Summarize one variant's measurement; every `seconds` is per unit of work."""

    name: str
    framework: str
    seconds: float | None
    """The geometric mean over launches; None without a complete round, or where a check rejects the variant."""
    lower: float | None = None
    """Lower end of the interval of its own time, which is not paired with the baseline."""
    upper: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each phase of a launch: `compile`, `first-step`, and so on."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Exported numbers, by field of `Numbers`."""
    failure: FailureReason | None = None
    not_compiled: FailureReason | None = None
    """Why it could not be compiled for a target although another variant could: an answer, not a failure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """Hold the headline of one BenchmarkResult."""

    namespace: str
    name: str
    uid: str
    run: str
    run_uid: str
    series: str
    case: str
    workload: str
    accelerator: str
    """Name of the profile, or of the target that the case was compiled for."""
    unit: str
    currency: str
    """Currency of its prices; empty without any."""
    finished_timestamp: float
    """Seconds since 1970, UTC."""
    complete: bool
    valid: bool
    rounds: int
    quarantined: int
    """Disturbed rounds, which count for no variant."""
    noisy: bool
    """Disturbed rounds count, because the run accepts noise."""
    variants: tuple[VariantSummary, ...]
    comparisons: tuple[Comparison, ...]
    observations: tuple[str, ...] = ()
    """If nothing was timed: what was observed of each variant or its compilation, in a few words."""
    failed_checks: tuple[str, ...] = ()
    checks_not_passed: tuple[tuple[str, str, int], ...] = ()
    """Check, outcome, and count: one for each variant, or one for all of them."""
    node: str = ""
    """Node that it was measured on."""
    source: str = ""
    """Digest of the workload's file."""
    created_timestamp: float = 0.0
    """When it was stored, by the API server's clock, in seconds since 1970."""
    margin: float = 0.0
    """Relative difference up to which its verdicts are `equivalent`."""
    shortcoming: str = ""
    """Why it is not complete, from its notes."""
    not_met: tuple[str, ...] = ()
    """One sentence for each expectation that is not met or undecided, as evaluated when the result was stored."""

    @property
    def key(self) -> Key:
        """Key of the BenchmarkResult."""
        return Key("BenchmarkResult", self.namespace, self.name, self.uid)

    @property
    def owner(self) -> str:
        """UID of its run."""
        return self.run_uid

    @property
    def only_noisy(self) -> bool:
        """Return True if accepted noise is the only reason why comparisons have no verdict."""
        return self.noisy and all(comparison.verdict or comparison.noisy for comparison in self.comparisons)

    def outcome(self, comparison: Comparison) -> str:
        """Return the verdict of one of its comparisons, or `failed`, `invalid`, `noisy` or `none`."""
        if comparison.verdict:
            return comparison.verdict
        sides = {comparison.variant, comparison.baseline}
        if any(variant.name in sides and (variant.failure or variant.not_compiled) for variant in self.variants):
            return "failed"
        return "invalid" if comparison.invalid else "noisy" if comparison.noisy else "none"
