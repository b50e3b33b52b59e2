"""Hold what the operator exports of itself at one moment, built once a scrape."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accelbench.api.result import SpeedupEstimate
from accelbench_operator.engine.api import RequestKind
from accelbench_operator.runs.summary import Summary


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
class LiveCase:
    """How far a case under way has come, as its runner tells."""

    namespace: str
    run: str
    case: str
    round: int = 0
    """Complete rounds, those that were quarantined included."""
    variant: str = ""
    """The one that is launched now; empty between launches."""
    phase: str = ""
    comparisons: tuple[SpeedupEstimate, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """The operator at one moment."""

    leading: bool
    """Results are exported only by the leader; health by every replica."""
    results: tuple[Summary, ...]
    """The latest result of each (namespace, series, case), the newest of them where there are more than are shown."""
    runs: Mapping[tuple[str, str], int]
    """Runs by (namespace, phase): Queued, Running, Suspended, Succeeded, ..."""
    held: Mapping[str, int]
    """Objects in the store by kind: Job, Pod, BenchmarkResult."""
    queue: QueueHealth
    requests: Mapping[RequestKind, int] = field(default_factory=dict)
    """Requests that this replica has made, but for its Lease and kopf's watch of runs."""
    cases: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """By (namespace, run, state) of runs that have not finished: total, active, measured, failed."""
    live: tuple[LiveCase, ...] = ()
    live_omitted: int = 0
    """Cases under way that are not followed, because there are too many."""
    omitted: int = 0
    """Results that would be shown, were there not more than `limit`."""
    limit: int = 0
