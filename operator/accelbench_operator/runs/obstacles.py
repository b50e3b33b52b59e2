"""What keeps an attempt from going on although its own code has no part in it: since when, how often, in whose words.

It is held in memory: an operator that starts anew is as patient as the first one was.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from accelbench_operator.runs.waits import TOLD_TRIES, Wait


@dataclass(frozen=True)
class Obstacle:
    """What is waited for was refused, or asked for, `tries` times since a moment; the words are those of the last."""

    wait: Wait
    since: datetime
    tries: int
    words: str

    def __str__(self) -> str:
        """For a condition: it stays the same while nothing changes."""
        return f"{self.wait.said}: {self.words.rstrip('. ')}. {self.wait.remedy}".rstrip(". ")

    @property
    def worth_telling(self) -> bool:
        """It was refused more than once."""
        return self.tries >= TOLD_TRIES

    def is_final(self, now: datetime) -> bool:
        """Whether it was tried often enough for long enough."""
        return self.wait.is_over(self.since, self.tries, now)


class Obstacles:
    """Those of all runs, by run UID, Job name and wait: one that is met beside another forgets nothing of it."""

    def __init__(self) -> None:
        self._of: dict[str, dict[tuple[str, Wait], Obstacle]] = {}

    def of(self, run_uid: str) -> Mapping[str, Obstacle]:
        """That which each Job of a run met last, by its name."""
        return {job: obstacle for (job, _), obstacle in self._of.get(run_uid, {}).items()}

    def is_final(self, run_uid: str, job: str, wait: Wait, now: datetime) -> bool:
        """Whether it was tried often enough for long enough."""
        met = self._of.get(run_uid, {}).get((job, wait))
        return met is not None and met.is_final(now)

    def meet(self, run_uid: str, job: str, wait: Wait, words: str, now: datetime) -> Obstacle:
        """It was refused once more."""
        known = self._of.setdefault(run_uid, {}).pop((job, wait), None)
        met = replace(known, tries=known.tries + 1, words=words) if known else Obstacle(wait, now, 1, words)
        self._of[run_uid][job, wait] = met
        return met

    def overcome(self, run_uid: str, job: str, wait: Wait) -> None:
        """It is over."""
        self._of.get(run_uid, {}).pop((job, wait), None)

    def forget(self, run_uid: str) -> None:
        """The run is gone, or has finished."""
        self._of.pop(run_uid, None)
