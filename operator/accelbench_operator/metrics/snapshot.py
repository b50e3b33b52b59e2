"""Define the state of the operator that a scrape exports; each scrape builds one snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from accelbench.api.result import SpeedupEstimate
from accelbench_operator.engine.api import RequestKind
from accelbench_operator.runs.summary import Summary


@dataclass(frozen=True)
class QueueHealth:
    """Describe the work queue and the event loop."""

    depth: int
    """Keys that are due and wait for a worker."""
    oldest_seconds: float
    """Seconds for which the oldest key has been due, including keys that workers handle now; 0.0 if there are none."""
    loop_lag_seconds: float
    """How late the event loop last woke from a timer."""
    reconciled_total: int
    """Reconciles that have ended, including those that raised an error."""
    failed_total: int
    """Reconciles that raised an error, whose keys were queued again with a delay."""


@dataclass(frozen=True)
class LiveCase:
    """Describe the progress of a running case, as its runner logs it."""

    namespace: str
    run: str
    case: str
    round: int = 0
    """Number of the last complete round; rounds that were quarantined (discarded) have numbers too."""
    variant: str = ""
    """The variant that is launched now; empty between launches."""
    phase: str = ""
    comparisons: tuple[SpeedupEstimate, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Describe the operator at the time of one scrape."""

    leading: bool
    """Only the leader exports results; every replica exports its health."""
    results: tuple[Summary, ...]
    """The latest result of each (namespace, series, case); at most `limit`: the newest of each namespace."""
    runs: Mapping[tuple[str, str], int]
    """Runs by (namespace, phase): Queued, Running, Suspended, Succeeded, ..."""
    stored_objects: Mapping[str, int]
    """Objects in the store by kind: Job, Pod, BenchmarkResult."""
    queue: QueueHealth
    requests: Mapping[RequestKind, int] = field(default_factory=dict)
    """Requests of this replica, except for its Lease and kopf's watch of runs."""
    cases: Mapping[tuple[str, ...], int] = field(default_factory=dict)
    """Cases of unfinished runs by (namespace, run, state); the states are total, active, measured and failed."""
    runs_omitted: int = 0
    """Unfinished runs that are missing in `cases`, because there are too many."""
    live: tuple[LiveCase, ...] = ()
    live_omitted: int = 0
    """Running cases that are not followed, because there are too many."""
    omitted: int = 0
    """Results that are not exported, because there are more than `limit`."""
    limit: int = 0
    """Maximum number of results that are exported."""
    unlisted_namespaces: tuple[str, ...] = ()
    """Namespaces of the operator's settings where the API server refuses a list, so that nothing is reconciled."""
