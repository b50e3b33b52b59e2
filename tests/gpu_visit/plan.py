"""Choose what a visit does next, from its list, the attempts so far, and the time left. Pure.

Tasks come in the order of the list. A task that does not fit into the time left is passed over for later ones that do.
A task that failed, here or at an earlier visit, comes after all others; no task is attempted twice at one visit, unless
its first attempt was measured and the list wants more rounds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["measured", "failed", "overran", "interrupted"]
"""`overran`: the attempt took longer than it was allowed to. `interrupted`: the visit was ended from outside."""
ALLOWED_FACTOR = 1.5
"""An attempt may take this many times its estimate, because estimates are rough and starts vary."""
OVERRUN_FACTOR = 2.0
"""After an overrun, the next estimate is this many times the time that was not enough."""


@dataclass(frozen=True)
class Task:
    """Describe one item of the list to the plan."""

    name: str
    """Unique, but for tasks that measure the same thing with another number of rounds."""
    question: str
    """Digest of what is asked: an attempt at another question does not count."""
    rounds_min: int
    """Number of rounds from which the task is done."""
    rounds_max: int
    """Maximum number of rounds."""
    start_seconds: float
    """Estimated seconds of an attempt that do not depend on its rounds."""
    round_seconds: float
    """Estimated seconds of a round."""
    group: str = ""
    """Tasks of one group may run at the same time; empty: the task needs the device for itself."""
    at_once: int = 1
    """Maximum number of tasks of the group that run at the same time."""


@dataclass(frozen=True)
class Attempt:
    """Record how one attempt at a task ended."""

    name: str
    question: str
    visit: str
    """The visit at which it was made."""
    outcome: Outcome
    rounds_wanted: int
    """`rounds_min` of the task."""
    rounds: int
    """Rounds that were measured."""
    seconds: float


@dataclass(frozen=True)
class Step:
    """Hold what to do next."""

    tasks: tuple[Task, ...]
    """One task, or several of one group that run at the same time."""
    rounds: int
    """Number of rounds for which the time is expected to suffice."""
    seconds: float
    """Maximum seconds of the step, after which it is ended."""


def next_step(tasks: Sequence[Task], attempts: Sequence[Attempt], *, visit: str, seconds_left: float) -> Step | None:
    """Return the next step of a visit; None if nothing is left that fits into the time left.

    Args:
        tasks: The list, in its order.
        attempts: All attempts on devices of the same model with the same frameworks, oldest first.
        visit: The present visit, as in `Attempt.visit`.
        seconds_left: Seconds until the visit has to end.
    """
    candidates = list(_candidates(tasks, attempts, visit))
    for position, task in enumerate(candidates):
        start, round_seconds = estimate(task, attempts)
        if start + task.rounds_min * round_seconds > seconds_left:
            continue
        affordable_rounds = math.floor((seconds_left - start) / round_seconds)
        rounds = min(task.rounds_max, max(task.rounds_min, affordable_rounds))
        allowed = min(seconds_left, ALLOWED_FACTOR * (start + rounds * round_seconds))
        return Step((task, *_companions(task, candidates[position + 1 :])), rounds, allowed)
    return None


def is_done(task: Task, attempts: Sequence[Attempt]) -> bool:
    """Return True if an attempt has measured what the task asks, with enough rounds."""
    return any(
        attempt.outcome == "measured" and attempt.rounds >= task.rounds_min for attempt in _attempts_at(task, attempts)
    )


def estimate(task: Task, attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Return the seconds that an attempt takes apart from its rounds, and the seconds of a round.

    These are the list's, scaled by how long the last attempt took that was measured or overran.
    """
    scale = 1.0
    for attempt in attempts:
        if attempt.name != task.name:
            continue
        if attempt.outcome == "measured":
            scale = attempt.seconds / (task.start_seconds + attempt.rounds * task.round_seconds)
        elif attempt.outcome == "overran":
            scale = OVERRUN_FACTOR * attempt.seconds / (task.start_seconds + task.rounds_min * task.round_seconds)
    return scale * task.start_seconds, scale * task.round_seconds


def _candidates(tasks: Sequence[Task], attempts: Sequence[Attempt], visit: str) -> Iterator[Task]:
    """Yield the tasks that the visit may still attempt: those that failed least often first, in the list's order."""
    by_failures: dict[int, list[Task]] = {}
    for task in tasks:
        earlier = _attempts_at(task, attempts)
        wanted_here = [attempt.rounds_wanted for attempt in earlier if attempt.visit == visit]
        failed_here = any(attempt.visit == visit and attempt.outcome != "measured" for attempt in earlier)
        if is_done(task, attempts) or failed_here or task.rounds_min in wanted_here:
            continue
        failures = sum(attempt.outcome in {"failed", "overran"} for attempt in earlier)
        by_failures.setdefault(failures, []).append(task)
    for failures in sorted(by_failures):
        yield from by_failures[failures]


def _attempts_at(task: Task, attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the attempts at what the task asks, with any number of rounds."""
    return [attempt for attempt in attempts if (attempt.name, attempt.question) == (task.name, task.question)]


def _companions(task: Task, later: Sequence[Task]) -> list[Task]:
    """Return the tasks among `later` that run at the same time as `task`: the next ones of its group."""
    if not task.group:
        return []
    return [other for other in later if other.group == task.group][: task.at_once - 1]
