"""Define the actions of a run. `decide` chooses them; `reconcile` and `apply` carry them out. Each can be repeated."""

from dataclasses import dataclass

from accelbench.api.reasons import RetryLimit
from accelbench.api.run import Attempt
from accelbench_operator.runs.attempts import EventsToRead
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import ObservedPod


@dataclass(frozen=True)
class CreateJob:
    """Create the Job of an attempt, unless its case has a result."""

    case: str
    attempt: int
    is_first: bool = False
    """True if this decision records the case's first attempt, so that no result can exist yet."""


@dataclass(frozen=True)
class Collect:
    """Read how an attempt ended: store its result, or note its failure."""

    attempt: Attempt
    retries: frozenset[RetryLimit]
    """Retry limits that are not reached yet. If no attempt can follow, even an incomplete result is stored."""


@dataclass(frozen=True)
class ConfirmFailure:
    """Note the failure if the API server has the same Job and pod as the store, which may be outdated."""

    attempt: Attempt
    failure: AttemptFailure


@dataclass(frozen=True)
class ReadQueue:
    """Read from Kueue why the queue holds this attempt's Job."""

    attempt: Attempt


@dataclass(frozen=True)
class ReadEvents:
    """Read from Events why this attempt does not start."""

    attempt: Attempt
    events: EventsToRead


@dataclass(frozen=True)
class ReadPods:
    """Read pods that no watch reports: whether they still exist, and their state."""

    pods: tuple[ObservedPod, ...]


@dataclass(frozen=True)
class DeleteJob:
    """Delete the Job with this name and UID."""

    name: str
    uid: str
    result: str | None = None
    """Name of the BenchmarkResult that must exist before the deletion; None if the case has none."""


@dataclass(frozen=True)
class DeleteRun:
    """Delete the run, whose time to live is over."""


Action = CreateJob | Collect | ConfirmFailure | ReadEvents | ReadPods | ReadQueue | DeleteJob | DeleteRun
