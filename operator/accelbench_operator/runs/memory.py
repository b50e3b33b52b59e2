"""Remember what this process has learned about a run; a restarted process learns it again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.kueue import QueueReport
from accelbench_operator.runs.waits import REPORTED_TRIES, Wait


@dataclass(frozen=True)
class Obstacle:
    """Describe a refusal or an Event that holds up an attempt."""

    wait: Wait
    since: datetime
    tries: int
    """Number of refusals, or of reads of Events, since then."""
    message: str
    """Message of the last refusal or Event."""

    def __str__(self) -> str:
        """Return a sentence for a condition, which does not change with each try."""
        return f"{self.wait.problem}: {self.message.rstrip('. ')}. {self.wait.remedy}".rstrip(". ")

    @property
    def should_report(self) -> bool:
        """Return True after at least `REPORTED_TRIES` refusals: a single one is over before anybody reads about it."""
        return self.tries >= REPORTED_TRIES

    def is_final(self, now: datetime) -> bool:
        """Return True if the limits of its wait are reached: the minimum number of tries, and the time."""
        return self.wait.is_over(self.since, self.tries, now)


@dataclass
class RunMemory:
    """Remember, mostly by Job name, what this process has learned about one run."""

    failures: dict[str, AttemptFailure] = field(default_factory=dict)
    """Failure of an attempt, noted once the API server had no result of its case."""
    queues: dict[str, QueueReport] = field(default_factory=dict)
    """Why a queue holds the Job."""
    stored: set[str] = field(default_factory=set)
    """Names of the results that the API server accepted from this process."""
    deleted: set[str] = field(default_factory=set)
    """UIDs of the Jobs that this process deleted; their watch may still report them."""
    _obstacles: dict[tuple[str, Wait], Obstacle] = field(default_factory=dict)

    @property
    def obstacles(self) -> Mapping[str, Obstacle]:
        """The latest obstacle of each Job, by its name."""
        return {job: obstacle for (job, _), obstacle in self._obstacles.items()}

    def record(self, job: str, wait: Wait, message: str, now: datetime) -> None:
        """Count a refusal, or a read of Events, and keep its message."""
        earlier = self._obstacles.pop((job, wait), None)  # the latest is last
        obstacle = (
            replace(earlier, tries=earlier.tries + 1, message=message) if earlier else Obstacle(wait, now, 1, message)
        )
        self._obstacles[job, wait] = obstacle

    def clear(self, job: str, wait: Wait) -> None:
        """Forget an obstacle that is over; those of other waits stay."""
        self._obstacles.pop((job, wait), None)

    def is_final(self, job: str, wait: Wait, now: datetime) -> bool:
        """Return True if this wait of the Job has an obstacle whose limits are reached."""
        obstacle = self._obstacles.get((job, wait))
        return obstacle is not None and obstacle.is_final(now)
