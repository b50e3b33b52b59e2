"""What keeps an attempt from going on although its own code has no part in it: since when, how often, in whose words.

It is held in memory: an operator that starts anew is as patient as the first one was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

LEAST_TRIES = 4
"""Before patience may end: an operator that was away for an hour has tried nothing in it."""
TOLD_TRIES = 2
"""A single refusal is over before anybody could read of it."""


class Step(Enum):
    """What is tried again and again: how it is said, and for how long it is tried from the first refusal on."""

    CREATE_JOB = ("its Job cannot be created", None)  # for as long as the case may wait for its start
    READ_LOG = ("the log of its pod cannot be read", timedelta(minutes=5))  # a node that is gone holds up no run
    STORE_RESULT = ("its result cannot be stored", timedelta(minutes=30))  # somebody may raise the quota

    def __init__(self, said: str, patience: timedelta | None) -> None:
        self.said = said
        self.patience = patience


@dataclass(frozen=True)
class Obstacle:
    """A step that was refused `tries` times since a moment; the words are those of the last refusal."""

    step: Step
    since: datetime
    tries: int
    words: str

    def __str__(self) -> str:
        """For a condition: it stays the same while nothing changes."""
        return f"{self.step.said}: {self.words}"

    @property
    def worth_telling(self) -> bool:
        """It was refused more than once."""
        return self.tries >= TOLD_TRIES

    def is_final(self, now: datetime) -> bool:
        """Whether it was tried often enough for long enough."""
        patience = self.step.patience
        return patience is not None and self.tries >= LEAST_TRIES and now - self.since >= patience


class Obstacles:
    """Those of all runs, by run UID, Job name and step: one that is met beside another forgets nothing of it."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[str, Step], Obstacle]] = {}

    def of(self, run_uid: str) -> Mapping[str, Obstacle]:
        """That which each Job of a run met last, by its name."""
        return {job: obstacle for (job, _), obstacle in self._of.get(run_uid, {}).items()}

    def is_final(self, run_uid: str, job: str, step: Step, now: datetime) -> bool:
        """Whether the step was tried often enough for long enough."""
        met = self._of.get(run_uid, {}).get((job, step))
        return met is not None and met.is_final(now)

    def meet(self, run_uid: str, job: str, step: Step, words: str, now: datetime) -> Obstacle:
        """The step was refused once more."""
        known = self._of.setdefault(run_uid, {}).pop((job, step), None)
        met = replace(known, tries=known.tries + 1, words=words) if known else Obstacle(step, now, 1, words)
        self._of[run_uid][job, step] = met
        return met

    def overcome(self, run_uid: str, job: str, step: Step) -> None:
        """The step was taken."""
        self._of.get(run_uid, {}).pop((job, step), None)

    def forget(self, run_uid: str) -> None:
        """The run is gone, or has finished."""
        self._of.pop(run_uid, None)
