"""Describe what can be done for a run: `decide` chooses, `apply` does it. Each action can be repeated."""

from dataclasses import dataclass

from accelbench.api.run import Attempt
from accelbench_operator.runs.attempts import EventQuestion
from accelbench_operator.runs.failure import AttemptFailure


@dataclass(frozen=True)
class CreateJob:
    """Create the Job of an attempt, unless its case has a result."""

    case: str
    attempt: int
    is_first: bool = False
    """The case's first attempt, recorded just now: there can be no result yet."""


@dataclass(frozen=True)
class Collect:
    """Find out how an attempt ended: store its result, or note why there is none."""

    attempt: Attempt
    last: bool
    """No other attempt will follow, so an incomplete result is better than none."""


@dataclass(frozen=True)
class ConfirmFailure:
    """Read Job and pod from the API server before the attempt fails: a watch may be behind."""

    attempt: Attempt
    failure: AttemptFailure


@dataclass(frozen=True)
class ReadQueue:
    """Find out why the queue of this attempt's Job holds it."""

    attempt: Attempt


@dataclass(frozen=True)
class ReadEvents:
    """Find out from Events why this attempt does not start."""

    attempt: Attempt
    question: EventQuestion


@dataclass(frozen=True)
class DeleteJob:
    """Delete exactly this Job."""

    name: str
    uid: str
    result: str | None = None
    """The BenchmarkResult that must be stored before; None: the Job brought none."""


@dataclass(frozen=True)
class DeleteRun:
    """Delete the run, whose time to live is over."""


Action = CreateJob | Collect | ConfirmFailure | ReadEvents | ReadQueue | DeleteJob | DeleteRun
