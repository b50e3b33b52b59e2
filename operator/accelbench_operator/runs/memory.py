"""Remember what this process has learned about a run; a restarted process learns it again."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.kueue import QueueReport
from accelbench_operator.runs.waits import REPORTED_TRIES, Wait


@dataclass(frozen=True)
class Obstacle:
    """Describe a failed request or an Event that delays an attempt."""

    wait: Wait
    since: datetime
    """Time of the first failure, or of the first read of Events."""
    tries: int
    """Number of failures, or of reads of Events, from the first to the latest."""
    message: str
    """Message of the latest failure or Event."""

    def __str__(self) -> str:
        """Return the obstacle as a sentence for the message of a condition."""
        # The number of tries is left out: it would change the status at each try.
        return f"{self.wait.problem}: {self.message.rstrip('. ')}. {self.wait.remedy}".rstrip(". ")

    @property
    def should_report(self) -> bool:
        """Return True if a condition should report the obstacle."""
        return self.tries >= REPORTED_TRIES

    def is_final(self, now: datetime) -> bool:
        """Return True if the wait has reached its limit of tries and time."""
        return self.wait.is_over(self.since, self.tries, now)


@dataclass
class RunMemory:
    """Remember, mostly by Job name, what this process has learned about one run."""

    failures: dict[str, AttemptFailure] = field(default_factory=dict)
    """Failures of attempts; noted only after the API server had no result of the case."""
    queues: dict[str, QueueReport] = field(default_factory=dict)
    """Reasons why queues do not admit Jobs."""
    stored_results: set[str] = field(default_factory=set)
    """Names of the BenchmarkResults that the API server accepted from this process."""
    own_jobs: dict[str, str] = field(default_factory=dict)
    """UIDs of the Jobs that this process created or compared with what it would create, by name."""
    documents: dict[str, frozenset[str]] = field(default_factory=dict)
    """Digests of the documents of the case that each Job in flight is for, by the Job's name. There are several if an
    operator of another release wrote the same case in other words."""
    deleted_jobs: set[str] = field(default_factory=set)
    """UIDs of the Jobs that this process deleted; their watch may still report them."""
    _obstacles: dict[tuple[str, Wait], Obstacle] = field(default_factory=dict)

    @property
    def obstacles(self) -> Mapping[str, Obstacle]:
        """Return the latest obstacle of each Job, by the Job's name."""
        # The latest is last in `_obstacles`, so it replaces the earlier ones of the same Job.
        return {job: obstacle for (job, _), obstacle in self._obstacles.items()}

    def record(self, job: str, wait: Wait, message: str, now: datetime) -> None:
        """Count another try in this wait of the Job, and keep the message of this try."""
        # Remove and add the obstacle, so that the latest is last.
        earlier = self._obstacles.pop((job, wait), None)
        if earlier:
            obstacle = replace(earlier, tries=earlier.tries + 1, message=message)
        else:
            obstacle = Obstacle(wait, now, 1, message)
        self._obstacles[job, wait] = obstacle

    def clear(self, job: str, wait: Wait) -> None:
        """Remove the Job's obstacle in this wait, if there is one."""
        self._obstacles.pop((job, wait), None)

    def is_final(self, job: str, wait: Wait, now: datetime) -> bool:
        """Return True if this wait of the Job has reached its limit of tries and time."""
        obstacle = self._obstacles.get((job, wait))
        return obstacle is not None and obstacle.is_final(now)
