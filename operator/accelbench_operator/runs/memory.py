"""Remember what this process has learned about a run; a restarted process learns it again."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.kueue import QueueReport
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.waits import REPORTED_TRIES, Wait

MAXIMUM_PODS = 4
"""Maximum number of pods of a Job to remember: a Job has one, and perhaps another from before its queue evicted it."""
BETWEEN_READS = timedelta(seconds=15)
"""Time between two reads of a pod that no watch reports."""


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

    def has_reached_limits(self, now: datetime) -> bool:
        """Return True if the wait has reached both its limit of tries and its limit of time."""
        return self.wait.is_over(self.since, self.tries, now)


@dataclass
class RunMemory:
    """Remember, mostly by Job name, what this process has learned about one run."""

    failures: dict[str, AttemptFailure] = field(default_factory=dict)
    """Failures of attempts. The API server was asked first, and had no result of the case."""
    queues: dict[str, QueueReport] = field(default_factory=dict)
    """Reasons why queues do not admit Jobs."""
    stored_results: set[str] = field(default_factory=set)
    """Names of the BenchmarkResults that the API server accepted from this process."""
    own_jobs: dict[str, str] = field(default_factory=dict)
    """UIDs of the Jobs that this process created or compared with what it would create, by name."""
    documents: dict[str, frozenset[str]] = field(default_factory=dict)
    """Digests of the case documents that a Job in flight and its pods may have, by the Job's name. There are several if
    an operator of another release wrote the document of the same case differently."""
    pods: dict[str, ObservedPod] = field(default_factory=dict)
    """Pods of the run's Jobs that had not ended when they were last seen, by UID.

    A watch selects by labels, so it reports a pod as deleted if somebody removes its labels."""
    next_reads: dict[str, datetime] = field(default_factory=dict)
    """When to read a pod again that no watch reports, by UID."""
    times_to_live: dict[str, int] = field(default_factory=dict)
    """Seconds of the `ttlSecondsAfterFinished` of Jobs that have one, by name; they outlive the Job."""
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

    def with_unwatched_pods(self, stored_pods: Iterable[ObservedPod], job_uids: Iterable[str]) -> list[ObservedPod]:
        """Return the stored pods and the remembered pods that the store lacks; remember the pods that may still run.

        `stored_pods` are all pods of the run in the store, and `job_uids` the UIDs of the run's Jobs.
        """
        current = []
        for stored in stored_pods:
            earlier = self.pods.get(stored.key.uid)
            # A pod stays the pod of its Job, even if users change its labels or owners.
            pod = _with_job_of(earlier, stored) if earlier else stored
            current.append(pod)
            self.next_reads.pop(pod.key.uid, None)
            if pod.is_over:
                self.pods.pop(pod.key.uid, None)
                continue
            is_new = pod.job_uid in job_uids and self._has_room(pod.job_uid)
            if earlier or is_new:
                self.pods[pod.key.uid] = pod
        stored_uids = {pod.key.uid for pod in current}
        unwatched_pods = [pod for uid, pod in self.pods.items() if uid not in stored_uids]
        return [*current, *unwatched_pods]

    def keep_unwatched_pod(self, pod: ObservedPod, now: datetime) -> None:
        """Remember a pod that was read because no watch reports it, and when to read it again.

        At most `MAXIMUM_PODS` of a Job are remembered.
        """
        earlier = self.pods.get(pod.key.uid)
        if earlier is None and not self._has_room(pod.job_uid):
            return
        # A pod stays the pod of its Job, even if users change its labels or owners.
        self.pods[pod.key.uid] = _with_job_of(earlier, pod) if earlier else pod
        self.next_reads[pod.key.uid] = now + BETWEEN_READS

    def forget_pod(self, uid: str) -> None:
        """Forget a pod that the API server does not have any more."""
        self.pods.pop(uid, None)
        self.next_reads.pop(uid, None)

    def _has_room(self, job_uid: str) -> bool:
        """Return True if another pod of the Job may be remembered."""
        return sum(pod.job_uid == job_uid for pod in self.pods.values()) < MAXIMUM_PODS

    def clear(self, job: str, wait: Wait) -> None:
        """Remove the Job's obstacle in this wait, if there is one."""
        self._obstacles.pop((job, wait), None)

    def has_reached_limits(self, job: str, wait: Wait, now: datetime) -> bool:
        """Return True if this wait of the Job has reached both its limit of tries and its limit of time."""
        obstacle = self._obstacles.get((job, wait))
        return obstacle is not None and obstacle.has_reached_limits(now)


def _with_job_of(earlier: ObservedPod, pod: ObservedPod) -> ObservedPod:
    """Return the pod with the run, the case and the Job that it had earlier."""
    return replace(pod, owner=earlier.owner, case=earlier.case, job=earlier.job, job_uid=earlier.job_uid)
