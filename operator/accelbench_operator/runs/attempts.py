"""Where an attempt at a case stands, read off its Job and its pod: pure."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum

from accelbench.api.run import Attempt
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.failure import AttemptFailure, node_lost, start_deadline_exceeded
from accelbench_operator.runs.kueue import QueueReport, explain_held, next_look
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, reporting_pod
from accelbench_operator.runs.obstacles import Obstacle
from accelbench_operator.runs.pending import explain_pending, explain_refused, is_silent
from accelbench_operator.runs.summary import Summary
from accelbench_operator.runs.waits import FIRST_QUESTION, Wait, next_question


@dataclass(frozen=True)
class Observed:
    """What the cluster holds of one run."""

    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    """By name."""
    pods: Mapping[str, tuple[ObservedPod, ...]] = field(default_factory=dict)
    """By their Job's name."""
    results: Mapping[str, Summary] = field(default_factory=dict)
    """By case."""
    losses: Mapping[str, AttemptFailure] = field(default_factory=dict)
    """By Job name: what looking for a result in vain has shown."""
    obstacles: Mapping[str, Obstacle] = field(default_factory=dict)
    """By Job name: what is refused to its attempt."""
    queues: Mapping[str, QueueReport] = field(default_factory=dict)
    """By Job name: why its queue holds it."""
    disruptions: Mapping[str, str] = field(default_factory=dict)
    """By Job name: why its pod, which is gone, had to go."""

    def pod(self, job: str) -> ObservedPod | None:
        """Return the pod that reports for a Job; None without any."""
        return reporting_pod(self.pods.get(job, ()))


class AttemptPhase(Enum):
    """How far an attempt has come."""

    RECORDED = "its Job is not there yet"
    WAITING = "its container does not run yet"
    RUNNING = "its container runs"
    OVER = "it ended, and its result is not stored yet"


@dataclass(frozen=True)
class Question:
    """Events of a Job or of a pod tell why an attempt does not start: whose, and when to ask for them."""

    wait: Wait
    about_uid: str
    at: datetime


@dataclass(frozen=True)
class AttemptState:
    """Where an attempt stands, until when that can last, and why it is lost where it is."""

    phase: AttemptPhase
    until: datetime | None = None
    loss: AttemptFailure | None = None
    suspected: AttemptFailure | None = None
    """Its time is up by what the watches have told; they may be behind, so the cluster is asked before it counts."""
    pending: str = ""
    """Why it waits, while it does."""
    asks: bool = False
    """Its queue holds it, and nobody has asked why lately."""
    question: Question | None = None
    """Where neither Job nor pod say why it waits."""


def state_of(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Where an attempt in flight stands at `now`; a loss that looking into its pod has shown comes first."""
    job, pod = observed.jobs.get(attempt.job), observed.pod(attempt.job)
    if loss := observed.losses.get(attempt.job):
        return AttemptState(AttemptPhase.OVER, loss=loss)
    if job and job.suspended and not job.ended:
        # Its queue has taken it back: whatever became of its pod, there will be another, and the case starts again.
        return _held(job, plan, observed, now)
    if job and not job.ended and pod and pod.disowned:
        # It had to go when its queue took the Job back: the pod that counts is not there yet. Nothing here may be
        # told by times: they are whole seconds, and a deletion's moves when the kubelet has ended the pod.
        state = _waiting(attempt, job, None, plan, observed, now)
        ending = f"Pod {pod.key.name} has not ended yet, although its queue has taken the Job back."
        return state if pod.is_over else replace(state, pending=ending, question=None)
    if (job is None and attempt.job_uid) or (job and job.ended) or (pod and pod.is_over):
        return AttemptState(AttemptPhase.OVER, pending=_told(attempt, observed))
    if (pod and pod.running) or (pod and pod.deleted):
        return _running(pod, plan, now)
    return _waiting(attempt, job, pod, plan, observed, now)


def _told(attempt: Attempt, observed: Observed) -> str:
    """What is refused to an attempt that is over, in words for a condition; empty where nothing is."""
    obstacle = observed.obstacles.get(attempt.job)
    over = {Wait.LOOK, Wait.RESULT, Wait.READ_LOG, Wait.STORE_RESULT}
    return f"{attempt.case}: {obstacle}" if obstacle and obstacle.wait in over and obstacle.worth_telling else ""


def _until(pod: ObservedPod, plan: Plan) -> datetime:
    """When a pod should have ended, by its own deadline or by its deletion."""
    until = (pod.accepted or pod.running or pod.created) + plan.pod_deadline + Wait.END_OF_POD.patience
    return min(until, pod.deleted + Wait.END_OF_POD.patience) if pod.deleted else until


def _running(pod: ObservedPod, plan: Plan, now: datetime) -> AttemptState:
    until = _until(pod, plan)
    return AttemptState(AttemptPhase.RUNNING, until, suspected=node_lost(pod, until) if now >= until else None)


def _waiting(
    attempt: Attempt, job: ObservedJob | None, pod: ObservedPod | None, plan: Plan, observed: Observed, now: datetime
) -> AttemptState:
    wait = _waits_for(job, pod)
    met = observed.obstacles.get(attempt.job)
    known = met if met and met.wait is wait else None
    if job is None and known and known.worth_telling:
        pending = f"{attempt.case}: {explain_refused(known.words)}"
    else:
        pending = explain_pending(job, pod, plan.profile, plan.script, known.words if known else "")
    phase = AttemptPhase.WAITING if job else AttemptPhase.RECORDED
    limit = wait.limit.of(plan.policy) or wait.patience
    since = (job.started or job.created) if job else datetime.fromisoformat(attempt.start_time)
    suspected = start_deadline_exceeded(pending, limit) if now >= since + limit else None
    question = _question(job, pod, known)
    return AttemptState(phase, since + limit, suspected=suspected, pending=pending, question=question)


def _waits_for(job: ObservedJob | None, pod: ObservedPod | None) -> Wait:
    if job is None:
        return Wait.CREATE_JOB
    return Wait.START if pod else Wait.POD


def _question(job: ObservedJob | None, pod: ObservedPod | None, known: Obstacle | None) -> Question | None:
    """Why a Job has no pod, or why a node does not start one, is told in their events and nowhere else."""
    if job is None or (pod and not is_silent(pod)):
        return None
    asked = next_question(known.since, known.tries) if known else None
    if pod:
        return Question(Wait.START, pod.key.uid, asked or pod.created + FIRST_QUESTION)
    return Question(Wait.POD, job.key.uid, asked or (job.started or job.created) + FIRST_QUESTION)


def _held(job: ObservedJob, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """In a queue a case waits for as long as that takes, unless it was given a deadline; in none it does not."""
    since = job.held or now
    known = observed.queues.get(job.key.name)
    known = known if known and known.held == job.held else None
    wait = Wait.QUEUE if known is None or known.in_queue else Wait.NO_QUEUE
    limit = wait.limit.of(plan.policy)
    deadline = since + limit if limit else None
    pending, look = explain_held(job, known), next_look(since, known, deadline)
    if now >= look:
        return AttemptState(AttemptPhase.WAITING, now, pending=pending, asks=True)
    late = start_deadline_exceeded(pending, limit) if limit and deadline and now >= deadline else None
    return AttemptState(AttemptPhase.WAITING, min(look, deadline or look), suspected=late, pending=pending)


def still_ending(case: str, plan: Plan, observed: Observed, now: datetime) -> tuple[ObservedPod, datetime] | None:
    """A pod of the case that may still be at work, and until when: past that it is on a node that is lost."""
    pods = itertools.chain.from_iterable(observed.pods.values())
    going = (pod for pod in pods if pod.case == case and not pod.is_over)
    untils = ((pod, _until(pod, plan)) for pod in going)
    return next(((pod, until) for pod, until in untils if now < until), None)
