"""Hold the headline of a BenchmarkResult: all that the operator keeps of one in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accelbench.api.reasons import FailureReason
from accelbench.api.result import Comparison
from accelbench_operator.engine.kinds import Key


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """One variant's measurement; every `seconds` is per unit of work."""

    name: str
    framework: str
    seconds: float | None
    """The geometric mean over launches; None without a complete round, or where a check rejects the variant."""
    lower: float | None = None
    """Lower end of its own interval, which pairs it with nothing."""
    upper: float | None = None
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each phase of a launch: `compile`, `first-step`, and so on."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Those that are exported, by the field of `Numbers`."""
    failure: FailureReason | None = None
    not_compiled: FailureReason | None = None
    """Why it could not be compiled for a target, where another variant could: an answer, and no failure."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The headline of one BenchmarkResult."""

    namespace: str
    name: str
    uid: str
    run: str
    run_uid: str
    series: str
    case: str
    workload: str
    accelerator: str
    """The profile's name; of what was compiled for a target, the target's."""
    unit: str
    currency: str
    """Of its prices; empty without any."""
    finished_timestamp: float
    """Seconds since 1970, UTC."""
    complete: bool
    valid: bool
    rounds: int
    quarantined: int
    """Rounds that something disturbed, and that count for no variant."""
    noisy: bool
    """Rounds that something disturbed count, as the run accepts noise."""
    variants: tuple[VariantSummary, ...]
    comparisons: tuple[Comparison, ...]
    observations: tuple[str, ...] = ()
    """In a few words, what was observed of each variant or came of compiling it, where nothing was timed."""
    failed_checks: tuple[str, ...] = ()
    checks_not_passed: tuple[tuple[str, str, int], ...] = ()
    """Check, outcome, and how often it came out so: once a variant, or once for all of them."""
    node: str = ""
    """The node that it was measured on."""
    source: str = ""
    """The digest of the file that the workload is written in."""
    created_timestamp: float = 0.0
    """When it was stored, by the API server's clock, in seconds since 1970."""
    margin: float = 0.0
    """The relative difference that its verdicts call equivalent."""
    shortcoming: str = ""
    """Why it is not complete, where its notes say so."""
    not_met: tuple[str, ...] = ()
    """One sentence for each expectation that is not met or undecided, as evaluated when the result was stored."""

    @property
    def key(self) -> Key:
        """Which BenchmarkResult it is."""
        return Key("BenchmarkResult", self.namespace, self.name, self.uid)

    @property
    def owner(self) -> str:
        """UID of its run."""
        return self.run_uid

    @property
    def only_noisy(self) -> bool:
        """Noise was accepted, and nothing else stands between the comparisons and their verdicts."""
        return self.noisy and all(each.verdict or each.noisy for each in self.comparisons)

    def outcome(self, comparison: Comparison) -> str:
        """Return the verdict of one of its comparisons; without one `failed`, `invalid`, `noisy` or `none`."""
        if comparison.verdict:
            return comparison.verdict
        sides = {comparison.variant, comparison.baseline}
        if any(variant.name in sides and (variant.failure or variant.not_compiled) for variant in self.variants):
            return "failed"
        return "invalid" if comparison.invalid else "noisy" if comparison.noisy else "none"
