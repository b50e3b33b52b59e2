"""Derive from its Job and its pods how far an attempt at a case has come; pure."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from accelbench.api.run import Attempt
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.failure import AttemptFailure, node_lost, start_deadline_exceeded
from accelbench_operator.runs.kueue import QueueReport, explain_held, next_look
from accelbench_operator.runs.memory import Obstacle
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, reporting_pod
from accelbench_operator.runs.pending import explain_pending, explain_refused, gives_no_reason
from accelbench_operator.runs.summary import Summary
from accelbench_operator.runs.waits import FIRST_QUESTION, Wait, next_question


@dataclass(frozen=True)
class Observed:
    """Hold the objects of one run in the cluster, and what this process remembers of its attempts."""

    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    """By name."""
    pods: Mapping[str, tuple[ObservedPod, ...]] = field(default_factory=dict)
    """By their Job's name."""
    results: Mapping[str, Summary] = field(default_factory=dict)
    """By case."""
    failures: Mapping[str, AttemptFailure] = field(default_factory=dict)
    """By Job name: the failure of its attempt, noted once the API server had no result of the case."""
    obstacles: Mapping[str, Obstacle] = field(default_factory=dict)
    """By Job name: what held up its attempt last."""
    queues: Mapping[str, QueueReport] = field(default_factory=dict)
    """By Job name: why its queue holds it."""
    disruptions: Mapping[str, str] = field(default_factory=dict)
    """By Job name: the disruption of its pod, which is deleted."""

    def pod(self, job: str) -> ObservedPod | None:
        """Return the pod whose end counts for a Job; None without any."""
        return reporting_pod(self.pods.get(job, ()))


class AttemptPhase(Enum):
    """Name how far an attempt has come."""

    RECORDED = "its Job does not exist yet"
    WAITING = "its container does not run yet"
    RUNNING = "its container runs"
    OVER = "it ended, and its result is not stored yet"


@dataclass(frozen=True)
class EventQuestion:
    """Describe which Events may explain why an attempt does not start, and when to read them."""

    wait: Wait
    about_uid: str
    """UID of the Job or the pod."""
    at: datetime


@dataclass(frozen=True)
class AttemptState:
    """Describe how far an attempt has come, and what it waits for."""

    phase: AttemptPhase
    until: datetime | None = None
    """When the phase ends at the latest."""
    failure: AttemptFailure | None = None
    suspected: AttemptFailure | None = None
    """Failure that counts once the API server has confirmed it, because the watches may be behind."""
    pending: str = ""
    """Reason why it waits; empty if it does not."""
    reads_queue: bool = False
    """True if its queue holds it, and it is time to read the reason."""
    question: EventQuestion | None = None
    """Set if neither Job nor pod explain why it waits."""


def state_of(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Return how far an attempt in flight has come at `now`."""
    job, pod = observed.jobs.get(attempt.job), observed.pod(attempt.job)
    if failure := observed.failures.get(attempt.job):
        return AttemptState(AttemptPhase.OVER, failure=failure)
    if job and job.suspended and not job.ended:
        # Its queue has taken it back: another pod will follow, and the case starts again.
        return _queued_state(job, plan, observed, now)
    if job and not job.ended and pod and pod.disowned:
        # The queue took the Job back and admitted it again, and the earlier pod still exists. Times cannot distinguish
        # the two pods: they are whole seconds, and the time of a deletion moves when the kubelet has ended the pod.
        state = _waiting_state(attempt, job, None, plan, observed, now)
        ending = f"Pod {pod.key.name} has not ended yet, although its queue has taken the Job back."
        return state if pod.is_over else replace(state, pending=ending, question=None)
    if (job is None and attempt.job_uid) or (job and job.ended) or (pod and pod.is_over):
        return AttemptState(AttemptPhase.OVER, pending=_problem_after_end(attempt, observed))
    if (pod and pod.running) or (pod and pod.deleted):
        return _running_state(pod, plan, now)
    return _waiting_state(attempt, job, pod, plan, observed, now)


def _problem_after_end(attempt: Attempt, observed: Observed) -> str:
    """Return why the result of an attempt that is over is not stored yet; empty if that needs no report."""
    obstacle = observed.obstacles.get(attempt.job)
    waits = {Wait.LOOK, Wait.RESULT, Wait.READ_LOG, Wait.STORE_RESULT}
    return f"{attempt.case}: {obstacle}" if obstacle and obstacle.wait in waits and obstacle.should_report else ""


def _end_of_pod(pod: ObservedPod, plan: Plan) -> datetime:
    """Return when a pod should have ended, by its own deadline or by its deletion."""
    until = (pod.accepted or pod.running or pod.created) + plan.pod_deadline + Wait.END_OF_POD.patience
    return min(until, pod.deleted + Wait.END_OF_POD.patience) if pod.deleted else until


def _running_state(pod: ObservedPod, plan: Plan, now: datetime) -> AttemptState:
    """Return the state of an attempt whose pod runs or is being deleted; suspect a lost node if it is overdue."""
    until = _end_of_pod(pod, plan)
    return AttemptState(AttemptPhase.RUNNING, until, suspected=node_lost(pod, until) if now >= until else None)


def _waiting_state(
    attempt: Attempt, job: ObservedJob | None, pod: ObservedPod | None, plan: Plan, observed: Observed, now: datetime
) -> AttemptState:
    """Return the state of an attempt that waits for its Job, pod or container, with the deadline of the wait."""
    wait = _current_wait(job, pod)
    obstacle = observed.obstacles.get(attempt.job)
    refusal = obstacle if obstacle and obstacle.wait is wait else None
    if job is None and refusal and refusal.should_report:
        pending = f"{attempt.case}: {explain_refused(refusal.message)}"
    else:
        pending = explain_pending(job, pod, plan.profile, plan.script, refusal.message if refusal else "")
    phase = AttemptPhase.WAITING if job else AttemptPhase.RECORDED
    limit = wait.limit.of(plan.policy) or wait.patience
    since = (job.started or job.created) if job else datetime.fromisoformat(attempt.start_time)
    suspected = start_deadline_exceeded(pending, limit) if now >= since + limit else None
    question = _event_question(job, pod, refusal)
    return AttemptState(phase, since + limit, suspected=suspected, pending=pending, question=question)


def _current_wait(job: ObservedJob | None, pod: ObservedPod | None) -> Wait:
    if job is None:
        return Wait.CREATE_JOB
    return Wait.START if pod else Wait.POD


def _event_question(job: ObservedJob | None, pod: ObservedPod | None, refusal: Obstacle | None) -> EventQuestion | None:
    """Return which Events to read: only they explain why a Job has no pod, or why a node does not start a pod."""
    if job is None or (pod and not gives_no_reason(pod)):
        return None
    next_read = next_question(refusal.since, refusal.tries) if refusal else None
    if pod:
        return EventQuestion(Wait.START, pod.key.uid, next_read or pod.created + FIRST_QUESTION)
    return EventQuestion(Wait.POD, job.key.uid, next_read or (job.started or job.created) + FIRST_QUESTION)


def _queued_state(job: ObservedJob, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Return the state of an attempt whose Job is suspended; in a queue only the run's policy sets a deadline."""
    since = job.suspended_since or now
    report = observed.queues.get(job.key.name)
    report = report if report and report.suspended_since == job.suspended_since else None
    wait = Wait.QUEUE if report is None or report.in_queue else Wait.NO_QUEUE
    limit = wait.limit.of(plan.policy)
    deadline = since + limit if limit else None
    pending, read_at = explain_held(job, report), next_look(since, report, deadline)
    if now >= read_at:
        return AttemptState(AttemptPhase.WAITING, now, pending=pending, reads_queue=True)
    suspected = start_deadline_exceeded(pending, limit) if limit and deadline and now >= deadline else None
    return AttemptState(AttemptPhase.WAITING, min(read_at, deadline or read_at), suspected=suspected, pending=pending)


def ending_pod(case: str, plan: Plan, observed: Observed, now: datetime) -> tuple[ObservedPod, datetime] | None:
    """Return a pod of the case that has not ended, and the time until which to wait for its end; None without any."""
    pods = itertools.chain.from_iterable(observed.pods.values())
    ending = ((pod, _end_of_pod(pod, plan)) for pod in pods if pod.case == case and not pod.is_over)
    return next(((pod, until) for pod, until in ending if now < until), None)
