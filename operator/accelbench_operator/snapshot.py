"""What the operator shows of itself: pulled once a scrape, so that nothing on the reconciler's path calls metrics.

`Summary` is also all that the operator keeps in memory of a BenchmarkResult.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class VariantSummary:
    """One variant's measurement; every `seconds` is per unit of work."""

    name: str
    framework: str
    seconds: float | None
    """The geometric mean over launches; None without a complete round, or where a check rejects the variant."""
    phase_seconds: Mapping[str, float] = field(default_factory=dict)
    """Median seconds of each phase of a launch: `compile`, `first-step`, and so on."""
    numbers: Mapping[str, float] = field(default_factory=dict)
    """Those that are exported, by the field of `Numbers`."""
    failure: str | None = None
    """The reason word (`OutOfMemory`), or None."""


@dataclass(frozen=True, slots=True)
class ComparisonSummary:
    """One variant against the baseline. Without verdict a side failed, checks did (`invalid`), or rounds lack."""

    variant: str
    baseline: str
    rounds: int
    verdict: str | None = None
    speedup: float | None = None
    lower: float | None = None
    upper: float | None = None
    invalid: tuple[str, ...] = ()
    failed: bool = False
    """The variant or the baseline failed."""
    noisy: bool = False
    """Disturbed rounds count: there is an interval and no verdict."""

    @property
    def outcome(self) -> str:
        """The verdict; without one `failed`, `invalid`, `noisy` or `none`."""
        if self.verdict:
            return self.verdict
        return "failed" if self.failed else "invalid" if self.invalid else "noisy" if self.noisy else "none"


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
    """The profile's name."""
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
    comparisons: tuple[ComparisonSummary, ...]
    observations: tuple[str, ...] = ()
    """In a few words, what was observed of each variant, where nothing was timed."""
    failed_checks: tuple[str, ...] = ()
    source: str = ""
    """The digest of the file that the workload is written in."""
    created_timestamp: float = 0.0
    """When it was stored, by the API server's clock, in seconds since 1970."""
    not_met: tuple[str, ...] = ()
    """One sentence for each expectation that is not met or undecided, as evaluated when the result was stored."""

    @property
    def only_noisy(self) -> bool:
        """Noise was accepted, and nothing else stands between the comparisons and their verdicts."""
        return self.noisy and all(each.verdict or each.noisy for each in self.comparisons)


@dataclass(frozen=True)
class QueueHealth:
    """How the operator itself is doing."""

    depth: int
    """Keys that are due and wait for a worker."""
    oldest_seconds: float
    """Age of the oldest of them; 0.0 with none."""
    loop_lag_seconds: float
    """How late the event loop last woke from a timer."""
    reconciled_total: int
    failed_total: int
    """Reconciles that raised and were put back with a delay."""


@dataclass(frozen=True)
class Snapshot:
    """The operator at one moment."""

    leading: bool
    """Results are exported only by the leader; health by every replica."""
    results: tuple[Summary, ...]
    """The latest result of each (namespace, series, case)."""
    runs: Mapping[tuple[str, str], int]
    """Runs by (namespace, phase): Queued, Running, Suspended, Succeeded, ..."""
    held: Mapping[str, int]
    """Objects in the store by kind: Job, Pod, BenchmarkResult."""
    queue: QueueHealth
