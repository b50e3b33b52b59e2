"""Derive the state of an attempt at a case from its Job and pods, without requests."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from accelbench.api.run import Attempt
from accelbench.plan.names import attempt_name
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.failure import (
    AttemptFailure,
    Removal,
    node_lost,
    start_deadline_exceeded,
)
from accelbench_operator.runs.kueue import QueueReport, explain_suspended, next_read_time
from accelbench_operator.runs.memory import Obstacle
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, explain_still_running, reporting_pod
from accelbench_operator.runs.pending import explain_pending, explain_refused, gives_reason
from accelbench_operator.runs.summary import Summary
from accelbench_operator.runs.waits import DELAY_BEFORE_FIRST_READ, Wait, next_events_read


@dataclass(frozen=True)
class Observed:
    """Hold the objects of one run in the cluster, and what this process remembers of its attempts."""

    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    """Jobs by name."""
    pods: Mapping[str, tuple[ObservedPod, ...]] = field(default_factory=dict)
    """Pods by the name of their Job."""
    results: Mapping[str, Summary] = field(default_factory=dict)
    """Results by case."""
    failures: Mapping[str, AttemptFailure] = field(default_factory=dict)
    """Failures of attempts by the name of their Job. The API server was asked first, and had no result of the case."""
    obstacles: Mapping[str, Obstacle] = field(default_factory=dict)
    """The latest obstacle of each attempt, a failed request or an Event that explains a delay, by its Job's name."""
    queues: Mapping[str, QueueReport] = field(default_factory=dict)
    """Reasons why queues do not admit Jobs, by the Job's name."""
    removals: Mapping[str, Removal] = field(default_factory=dict)
    """Why the cluster ended pods that have been deleted, by the name of their Job."""
    own_jobs: Mapping[str, str] = field(default_factory=dict)
    """UIDs of the Jobs that this process created or compared with what it would create, by name."""
    documents: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Digests of the case documents that a Job in flight and its pods may have, by the Job's name."""
    next_reads: Mapping[str, datetime | None] = field(default_factory=dict)
    """When to read a pod again that no watch reports and that may still run, by the pod's UID; None means now."""

    def job_uid(self, attempt: Attempt) -> str | None:
        """Return the UID of the attempt's own Job; None if no Job is known to be its own."""
        return attempt.job_uid or self.own_jobs.get(attempt.job)

    def job(self, attempt: Attempt) -> ObservedJob | None:
        """Return the Job that this operator created for the attempt.

        Return None if there is no Job of that name, or if it is not known to be the attempt's own.
        """
        job = self.jobs.get(attempt.job)
        return job if job and job.key.uid == self.job_uid(attempt) else None

    def pods_of(self, attempt: Attempt) -> tuple[ObservedPod, ...]:
        """Return the pods of the attempt's own Job."""
        job_uid = self.job_uid(attempt)
        return tuple(pod for pod in self.pods.get(attempt.job, ()) if pod.job_uid == job_uid)

    def pod(self, attempt: Attempt) -> ObservedPod | None:
        """Return the pod that decides how the attempt's Job ended; None if there is none."""
        return reporting_pod(self.pods_of(attempt))

    def has_other_case(self, attempt: Attempt) -> bool:
        """Return True if the attempt's Job or one of its pods has another case document than the operator wrote.

        False if this process does not know which documents they may have.
        """
        expected = self.documents.get(attempt.job)
        job = self.job(attempt)
        documents = {pod.document for pod in self.pods_of(attempt)}
        if job is not None:
            documents.add(job.document)
        return expected is not None and not documents <= expected

    def has_only_ended_pods(self, job: ObservedJob) -> bool:
        """Return True if the Job has at least one pod, all of them have ended, and no further pod will follow."""
        pods = [pod for pod in self.pods.get(job.key.name, ()) if pod.job_uid == job.key.uid]
        # A suspended Job gets a new pod when it is resumed; a pod that its Job no longer tracks is replaced.
        is_final = not job.is_suspended and not any(pod.is_untracked for pod in pods)
        return bool(pods) and all(pod.is_over for pod in pods) and is_final


class AttemptPhase(Enum):
    """Name the phases of an attempt."""

    RECORDED = "its Job does not exist yet"
    WAITING = "its container does not run yet"
    RUNNING = "its container runs"
    OVER = "it ended, and its result is not stored yet"


@dataclass(frozen=True)
class EventsToRead:
    """Name the Events that may explain why an attempt does not start, and when to read them."""

    wait: Wait
    about_uid: str
    """UID of the Job or the pod."""
    read_at: datetime
    """Time of the next read."""


@dataclass(frozen=True)
class AttemptState:
    """Describe the phase of an attempt, and what the attempt waits for."""

    phase: AttemptPhase
    until: datetime | None = None
    """Latest end of the phase, or time of the next read of the queue."""
    failure: AttemptFailure | None = None
    suspected_failure: AttemptFailure | None = None
    """A failure that the API server has to confirm, because the watches may be behind."""
    pending_reason: str = ""
    """Reason why the attempt waits; empty if it does not."""
    reads_queue: bool = False
    """True if a queue has not admitted the Job, and it is time to read why."""
    events_to_read: EventsToRead | None = None
    """Set if neither the Job nor the pod explains why the attempt waits."""


def state_of(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Return the state of an attempt in flight."""
    job, pod = observed.job(attempt), observed.pod(attempt)
    failure = observed.failures.get(attempt.job)
    # A pod that runs another case than the operator wrote can give no result, so there is nothing to wait for.
    if failure or observed.has_other_case(attempt):
        return AttemptState(AttemptPhase.OVER, failure=failure)
    if job and job.is_suspended and not job.has_ended:
        # If a pod had started, the queue has evicted the Job: another pod will follow, and the case starts again.
        return _queued_state(job, plan, observed, now)
    # An untracked pod belongs to an earlier admission of the Job. It is recognised by its missing finalizer, because
    # times are too coarse: they are whole seconds, and the deletion time moves when the kubelet ends the pod.
    if job and not job.has_ended and pod and pod.is_untracked:
        return _readmitted_state(attempt, job, pod, plan, observed, now)
    job_is_gone = job is None and bool(attempt.job_uid)  # the UID is recorded once the Job was observed
    job_has_ended = job is not None and job.has_ended
    runner_has_ended = pod is not None and pod.is_runner_over
    if job_is_gone or job_has_ended or runner_has_ended:
        return AttemptState(AttemptPhase.OVER, pending_reason=_problem_after_end(attempt, pod, observed))
    if pod and (pod.started_at or pod.deletion_time):
        return _running_state(pod, plan, now)
    return _waiting_state(attempt, job, pod, plan, observed, now)


def _readmitted_state(
    attempt: Attempt, job: ObservedJob, earlier_pod: ObservedPod, plan: Plan, observed: Observed, now: datetime
) -> AttemptState:
    """Return the state of an attempt whose Job the queue has evicted and admitted again, before its new pod exists.

    `earlier_pod` is the pod of the evicted Job; it may still run.
    """
    state = _waiting_state(attempt, job, None, plan, observed, now)
    if earlier_pod.is_over:
        return state
    # The Job gets its new pod only once the earlier one has ended (`podReplacementPolicy`): no Events need be read.
    reason = (
        f"Pod {earlier_pod.key.name} has not ended yet. It was started before the queue evicted the Job, and the Job "
        "gets a new pod once it has ended."
    )
    return replace(state, pending_reason=reason, events_to_read=None)


def _problem_after_end(attempt: Attempt, pod: ObservedPod | None, observed: Observed) -> str:
    """Return the problem that delays the result of an attempt that has ended; empty if there is none."""
    obstacle = observed.obstacles.get(attempt.job)
    waits_after_end = {Wait.FIND_POD, Wait.RESULT, Wait.READ_LOG, Wait.STORE_RESULT}
    if obstacle and obstacle.wait in waits_after_end and obstacle.should_report:
        return f"{attempt.case}: {obstacle}"
    if pod and not pod.is_over and pod.still_running:
        return f"{attempt.case}: the runner has ended, but {explain_still_running(pod)}"
    return ""


def _latest_end(pod: ObservedPod, plan: Plan) -> datetime:
    """Return the time from which on a pod counts as lost if it has not ended."""
    # The runner ends itself at its limit. A pod that waits is ended by the kubelet, at the pod's deadline.
    if pod.started_at:
        since, limit = pod.started_at, plan.runner_limit
    else:
        since, limit = pod.accepted_at or pod.created_at, plan.pod_deadline
    # The node's clock, which sets `started_at` and `accepted_at`, may be behind. But no kubelet accepts or starts a pod
    # before it is scheduled, a time that the API server's clock sets.
    latest_end = max(since, pod.scheduled_at or pod.created_at) + limit + Wait.END_OF_POD.default_limit
    if pod.deletion_time:
        return min(latest_end, pod.deletion_time + Wait.END_OF_POD.default_limit)
    return latest_end


def _running_state(pod: ObservedPod, plan: Plan, now: datetime) -> AttemptState:
    """Return the state of an attempt whose pod runs or is being deleted."""
    latest_end = _latest_end(pod, plan)
    # Only suspected: the watch of pods may be behind the API server.
    suspected = node_lost(pod, latest_end) if now >= latest_end else None
    return AttemptState(AttemptPhase.RUNNING, latest_end, suspected_failure=suspected)


def _waiting_state(
    attempt: Attempt, job: ObservedJob | None, pod: ObservedPod | None, plan: Plan, observed: Observed, now: datetime
) -> AttemptState:
    """Return the state of an attempt whose container has not started."""
    wait = _current_wait(job, pod)
    obstacle = observed.obstacles.get(attempt.job)
    if obstacle and obstacle.wait is not wait:
        # The obstacle is of an earlier wait, which is over.
        obstacle = None
    if job is None and obstacle and obstacle.should_report:
        pending = f"{attempt.case}: {explain_refused(obstacle.message)}"
    else:
        pending = explain_pending(job, pod, plan.profile, plan.script, obstacle.message if obstacle else "")
    phase = AttemptPhase.WAITING if job else AttemptPhase.RECORDED
    limit = wait.limit.maximum_time(plan.policy) or wait.default_limit  # these waits have a limit: `or` is for mypy
    since = (job.started_at or job.created_at) if job else datetime.fromisoformat(attempt.start_time)
    deadline = since + limit
    suspected = start_deadline_exceeded(pending, limit) if now >= deadline else None
    # Events can be forged, so an Event may explain a wait, but never ends it.
    events = _events_to_read(job, pod, obstacle)
    return AttemptState(phase, deadline, suspected_failure=suspected, pending_reason=pending, events_to_read=events)


def unwatched_pods(attempts: Iterable[Attempt], plan: Plan, observed: Observed) -> list[ObservedPod]:
    """Return the pods of unfinished attempts that have not ended, and that no watch reports."""
    candidates = [
        pod
        for pod in itertools.chain.from_iterable(observed.pods.values())
        if pod.key.uid in observed.next_reads and not pod.is_over
    ]
    if not candidates:
        return []
    unfinished = [attempt for attempt in attempts if not attempt.finished]
    return [pod for pod in candidates if any(_is_of_attempt(pod, attempt, plan, observed) for attempt in unfinished)]


def _is_of_attempt(pod: ObservedPod, attempt: Attempt, plan: Plan, observed: Observed) -> bool:
    """Return True if the pod belongs to the Job of this attempt, or of an earlier attempt at the same case."""
    # Labels are not compared, because users can change them: a pod whose label was removed still uses its device.
    metadata = plan.metadata
    numbers = range(1, attempt.number + 1)
    names = (attempt_name(metadata.name, metadata.uid, attempt.case, number) for number in numbers)
    # After a restart, the UIDs of earlier Jobs are unknown. Then the name is enough, because the cluster itself deletes
    # pods whose Job no longer exists.
    known_uid = observed.own_jobs.get(pod.job)
    may_be_own_job = known_uid is None or known_uid == pod.job_uid
    return pod.job in names and may_be_own_job


def _current_wait(job: ObservedJob | None, pod: ObservedPod | None) -> Wait:
    """Return what an attempt waits for before its container runs."""
    if job is None:
        return Wait.CREATE_JOB
    return Wait.START if pod else Wait.POD


def _events_to_read(job: ObservedJob | None, pod: ObservedPod | None, obstacle: Obstacle | None) -> EventsToRead | None:
    """Return which Events may explain why the attempt does not start; None if none needs to be read."""
    if job is None:
        # The API server's answer explains why there is no Job.
        return None
    if pod is not None and gives_reason(pod):
        return None
    # The obstacle records the first read of Events, and counts the reads.
    next_read = next_events_read(obstacle.since, obstacle.tries) if obstacle else None
    if pod:
        return EventsToRead(Wait.START, pod.key.uid, next_read or pod.created_at + DELAY_BEFORE_FIRST_READ)
    started_at = job.started_at or job.created_at
    return EventsToRead(Wait.POD, job.key.uid, next_read or started_at + DELAY_BEFORE_FIRST_READ)


def _queued_state(job: ObservedJob, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Return the state of an attempt whose Job is suspended."""
    since = job.suspended_since or now
    report = observed.queues.get(job.key.name)
    if report and report.suspended_since != job.suspended_since:
        # The report is about an earlier suspension.
        report = None
    wait = Wait.QUEUE if report is None or report.in_queue else Wait.NO_QUEUE
    limit = wait.limit.maximum_time(plan.policy)
    deadline = since + limit if limit else None
    pending = explain_suspended(job, report)
    # After the deadline, the queue is read once more before a failure is suspected.
    read_at = next_read_time(since, report, deadline)
    if now >= read_at:
        return AttemptState(AttemptPhase.WAITING, now, pending_reason=pending, reads_queue=True)
    is_late = deadline is not None and now >= deadline
    suspected = start_deadline_exceeded(pending, limit) if limit and is_late else None
    until = min(read_at, deadline) if deadline else read_at
    return AttemptState(AttemptPhase.WAITING, until, suspected_failure=suspected, pending_reason=pending)


def find_ending_pod(
    attempt: Attempt, plan: Plan, observed: Observed, now: datetime
) -> tuple[ObservedPod, datetime] | None:
    """Return a pod of this or an earlier attempt that has not ended, and the time when that pod counts as lost.

    None if all these pods have ended or are lost already.
    """
    for pod in itertools.chain.from_iterable(observed.pods.values()):
        if pod.is_over or not _is_of_attempt(pod, attempt, plan, observed):
            continue
        latest_end = _latest_end(pod, plan)
        # The next attempt does not wait for a lost pod.
        if now < latest_end:
            return pod, latest_end
    return None
