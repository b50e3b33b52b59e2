"""Where an attempt at a case stands, read off its Job and its pod: pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from accelbench.api.run import Attempt
from accelbench_operator.accept import Plan
from accelbench_operator.failure import AttemptFailure, node_lost, start_deadline_exceeded
from accelbench_operator.job import pod_deadline_seconds, script_of
from accelbench_operator.observed import ObservedJob, ObservedPod
from accelbench_operator.obstacles import Obstacle
from accelbench_operator.pending import explain_pending
from accelbench_operator.snapshot import Summary

END_GRACE = timedelta(seconds=120)
"""How long a pod may stay after its deadline or its deletion before its node counts as lost."""

DEFAULT_START_DEADLINE = timedelta(days=1)
"""Without a start deadline of its own a case waits so long for a node; then the run finishes and says so."""


@dataclass(frozen=True)
class Observed:
    """What the cluster holds of one run."""

    jobs: Mapping[str, ObservedJob] = field(default_factory=dict)
    """By name."""
    pods: Mapping[str, ObservedPod] = field(default_factory=dict)
    """By their Job's name, the newest of each."""
    results: Mapping[str, Summary] = field(default_factory=dict)
    """By case."""
    losses: Mapping[str, AttemptFailure] = field(default_factory=dict)
    """By Job name: what looking for a result in vain has shown."""
    obstacles: Mapping[str, Obstacle] = field(default_factory=dict)
    """By Job name: what is refused to its attempt."""


class AttemptPhase(Enum):
    """How far an attempt has come."""

    RECORDED = "its Job is not there yet"
    WAITING = "its container does not run yet"
    RUNNING = "its container runs"
    OVER = "it ended, and its result is not stored yet"


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


def state_of(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> AttemptState:
    """Where an attempt in flight stands at `now`; a loss that looking into its pod has shown comes first."""
    job, pod = observed.jobs.get(attempt.job), observed.pods.get(attempt.job)
    if loss := observed.losses.get(attempt.job):
        return AttemptState(AttemptPhase.OVER, loss=loss)
    if job and job.suspended and not job.ended:
        # Its queue has taken it back: whatever became of its pod, there will be another, and the case starts again.
        return _waiting(attempt, job, pod, plan, observed, now)
    if (job is None and attempt.job_uid) or (job and job.ended) or (pod and pod.is_over):
        return AttemptState(AttemptPhase.OVER, pending=_told(attempt, observed))
    if (pod and pod.running) or (pod and pod.deleted):
        return _running(pod, plan, now)
    return _waiting(attempt, job, pod, plan, observed, now)


def _told(attempt: Attempt, observed: Observed) -> str:
    """What is refused to the attempt, in words for a condition; empty where nothing is."""
    obstacle = observed.obstacles.get(attempt.job)
    return f"{attempt.case}: {obstacle}" if obstacle and obstacle.worth_telling else ""


def _until(pod: ObservedPod, plan: Plan) -> datetime:
    """When a pod should have ended, by its own deadline or by its deletion."""
    seconds = pod_deadline_seconds(plan.run.spec.measurement.time_limit_seconds)
    until = (pod.accepted or pod.running or pod.created) + timedelta(seconds=seconds) + END_GRACE
    return min(until, pod.deleted + END_GRACE) if pod.deleted else until


def _running(pod: ObservedPod, plan: Plan, now: datetime) -> AttemptState:
    until = _until(pod, plan)
    return AttemptState(AttemptPhase.RUNNING, until, suspected=node_lost(pod) if now >= until else None)


def _waiting(
    attempt: Attempt, job: ObservedJob | None, pod: ObservedPod | None, plan: Plan, observed: Observed, now: datetime
) -> AttemptState:
    phase = AttemptPhase.WAITING if job else AttemptPhase.RECORDED
    pending = _told(attempt, observed) or explain_pending(job, pod, plan.profile, script_of(plan.cases[0]))
    seconds = plan.run.spec.run_policy.start_deadline_seconds
    if job and job.suspended and not seconds:
        return AttemptState(phase, pending=pending)
    patience = timedelta(seconds=seconds) if seconds else DEFAULT_START_DEADLINE
    since = (job.started or job.created) if job else datetime.fromisoformat(attempt.start_time)
    suspected = start_deadline_exceeded(pending, patience) if now >= since + patience else None
    return AttemptState(phase, since + patience, suspected=suspected, pending=pending)


def still_ending(case: str, plan: Plan, observed: Observed, now: datetime) -> tuple[ObservedPod, datetime] | None:
    """A pod of the case that may still be at work, and until when: past that it is on a node that is lost."""
    going = (pod for pod in observed.pods.values() if pod.case == case and not pod.is_over)
    untils = ((pod, _until(pod, plan)) for pod in going)
    return next(((pod, until) for pod, until in untils if now < until), None)
