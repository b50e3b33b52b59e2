"""What can be done for a run: `decide` says which of it, `apply` does it. Each can be repeated."""

from dataclasses import dataclass

from accelbench.api.run import Attempt
from accelbench_operator.runs.attempts import Question
from accelbench_operator.runs.failure import AttemptFailure


@dataclass(frozen=True)
class CreateJob:
    """Create the Job of this attempt, unless its case has a result."""

    case: str
    attempt: int
    is_first: bool = False
    """The case's very first attempt, recorded right before this: nobody can have measured it."""


@dataclass(frozen=True)
class Collect:
    """Find out how this attempt ended: store its result, or learn why there is none.

    With `last` there is no other attempt to come, so an incomplete result is better than none.
    """

    attempt: Attempt
    last: bool


@dataclass(frozen=True)
class Confirm:
    """Ask the cluster whether this attempt has failed as it seems: a watch that is behind has not heard of its end."""

    attempt: Attempt
    failure: AttemptFailure


@dataclass(frozen=True)
class AskQueue:
    """Find out why the queue of this attempt's Job holds it."""

    attempt: Attempt


@dataclass(frozen=True)
class DeleteJob:
    """Delete exactly this Job; with `result`, only once that BenchmarkResult is confirmed to be stored."""

    name: str
    uid: str
    result: str | None = None


@dataclass(frozen=True)
class DeleteRun:
    """Its time to live is over."""


@dataclass(frozen=True)
class Ask:
    """Have events tell why this attempt does not start."""

    attempt: Attempt
    question: Question


Action = CreateJob | Collect | Confirm | Ask | AskQueue | DeleteJob | DeleteRun
