"""Decide the next step of a run from its spec, its status, the cluster's objects and the time, without requests.

`apply` carries out the actions, and may be killed between any two requests. Nothing is lost because

- an attempt is recorded in the status before its Job is created, with the Job's name, and stays there until its result
  is stored; afterwards the case's name is recorded;
- a Job that no attempt in flight names is deleted; a Job that has ended without a valid result stays for a limited
  time, because its log may be needed;
- every wait ends: `requeue_at` is when to decide again even if no watch reports a change until then.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason, ConditionReason, RetryLimit
from accelbench.api.run import Attempt, BenchmarkRunStatus
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name
from accelbench_operator.runs.accept import FinishedRun, Plan, Refused, RunRetention
from accelbench_operator.runs.actions import (
    Action,
    Collect,
    ConfirmFailure,
    CreateJob,
    DeleteJob,
    DeleteRun,
    ReadEvents,
    ReadPods,
    ReadQueue,
)
from accelbench_operator.runs.attempts import (
    AttemptPhase,
    AttemptState,
    Observed,
    find_ending_pod,
    state_of,
    unwatched_pods,
)
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import ObservedJob, ObservedPod, explain_still_running
from accelbench_operator.runs.status import (
    RunProgress,
    Stop,
    finished_at,
    progress_status,
    refused_status,
    with_generation,
)
from accelbench_operator.runs.waits import BETWEEN_CASES, Wait, retry_delay

BUSY = frozenset({AttemptPhase.RUNNING, AttemptPhase.OVER})
"""Phases of an attempt that make its run Running; while an attempt is OVER, its result is being read."""

NO_JOB = {"job": "", "job_uid": None, "pod": None, "node": None, "image": None}
"""Fields of an attempt that has no Job."""


@dataclass(frozen=True)
class Decision:
    """Hold the status to write first, then the actions to carry out, and when to decide again at the latest."""

    status: BenchmarkRunStatus
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None


def decide(
    plan: Plan | Refused | FinishedRun, status: BenchmarkRunStatus, observed: Observed, now: datetime, generation: int
) -> Decision:
    """Decide the next step of a run.

    `status` must name the attempt of each existing Job, so it must not be older than any Job. `plan` may be a
    FinishedRun only if `status` says that the run has finished; else this raises TypeError.
    """
    finish_time = finished_at(status)
    if finish_time is not None:
        updated = with_generation(status, generation)
        return _decide_after_end(plan.retention, updated, observed, finish_time, now)
    if isinstance(plan, FinishedRun):
        raise TypeError("a run that has not finished needs its plan")
    if isinstance(plan, Refused):
        refused = refused_status(plan.message, status, now, generation)
        return _decide_after_end(plan.retention, refused, observed, finish_time=now, now=now)
    situation = _assess(plan, status, observed, now)
    attempts, stop = _advance_all(situation)
    return _conclude(situation, attempts, stop)


@dataclass(frozen=True)
class _Situation:
    """Describe an unfinished run before anything is decided."""

    plan: Plan
    observed: Observed
    now: datetime
    recorded_attempts: tuple[Attempt, ...]
    """The attempts of the status."""
    status: BenchmarkRunStatus
    """The status with its active time up to date."""
    states: Mapping[str, AttemptState]
    """By case: the states of attempts in flight that have no result."""
    running_cases: frozenset[str]
    """Cases whose container runs."""
    pods: Sequence[ObservedPod]
    """The pod of each attempt in flight that has one."""
    measured_cases: frozenset[str]
    """Cases with a result, including those whose result was deleted since."""

    @property
    def active_until(self) -> datetime | None:
        """Return when the run reaches its active deadline; None if it is not active."""
        return _active_until(self.plan, self.status)


def _assess(plan: Plan, status: BenchmarkRunStatus, observed: Observed, now: datetime) -> _Situation:
    """Derive the states of the attempts and the run's active time from the observed objects, before any decision."""
    in_flight = [attempt for attempt in status.attempts if _in_flight(attempt)]
    states = {
        attempt.case: state_of(attempt, plan, observed, now)
        for attempt in in_flight
        if attempt.case not in observed.results
    }
    running_cases = frozenset(case for case, state in states.items() if state.phase is AttemptPhase.RUNNING)
    pods_or_none = [observed.pod(attempt) for attempt in in_flight]
    pods = [pod for pod in pods_or_none if pod is not None]
    # A run is active while the container of a case runs.
    if running_cases:
        running_pods = [pod for pod in pods if pod.case in running_cases]
        updated_status = _start_active_time(status, running_pods, now)
    else:
        updated_status = _stop_active_time(status, pods, now)
    return _Situation(
        plan=plan,
        observed=observed,
        now=now,
        recorded_attempts=status.attempts,
        status=updated_status,
        states=states,
        running_cases=running_cases,
        pods=pods,
        # The status still names a case whose result was deleted.
        measured_cases=frozenset(observed.results.keys() | status.measured_cases),
    )


def _advance_all(situation: _Situation) -> tuple[tuple[Attempt, ...], Stop | None]:
    """Return the attempts for the new status, and the reason to stop, if any."""
    plan, observed, now = situation.plan, situation.observed, situation.now
    stop = _stop_of_run(plan, situation.status, now) or _stop_after_missed_start(situation.recorded_attempts)
    attempts = {
        attempt.case: _advance(attempt, situation.states.get(attempt.case), plan, observed, stop, now)
        for attempt in situation.recorded_attempts
        if attempt.case not in situation.measured_cases
    }
    # One of these attempts may have failed just now.
    stop = stop or _stop_after_missed_start(attempts.values())
    if stop is not None:
        for attempt in list(attempts.values()):
            if _awaits_retry(attempt):
                # The run stops, so the case gets no further attempt.
                attempts[attempt.case] = _as_last_attempt(attempt, now)
    elif not plan.policy.suspend:
        attempts |= _start_cases(plan, attempts, situation.measured_cases, observed, now)
    return tuple(attempts[name] for name in plan.names if name in attempts), stop


def _conclude(situation: _Situation, attempts: tuple[Attempt, ...], stop: Stop | None) -> Decision:
    """Return the new status, the actions and the time of the next step, which follow from the new attempts."""
    plan, observed, states, now = situation.plan, situation.observed, situation.states, situation.now
    cases_in_flight = {attempt.case for attempt in attempts if _in_flight(attempt)}
    # A case that was running may have been discarded just now.
    is_active = not cases_in_flight.isdisjoint(situation.running_cases)
    pauses: dict[str, _Pause] = {}
    for attempt in attempts:
        pause = _pause_before_next(attempt, plan, observed, now)
        if pause is not None:
            pauses[attempt.case] = pause
    progress = RunProgress(
        attempts=attempts,
        measured_cases=tuple(name for name in plan.names if name in situation.measured_cases),
        results=observed.results,
        now=now,
        stop=stop,
        is_busy=any(states[case].phase in BUSY for case in cases_in_flight & states.keys()),
        pending_reason=_first_pending_reason(attempts, states, pauses),
    )
    status = situation.status if is_active else _stop_active_time(situation.status, situation.pods, now)
    actions = _actions(plan, situation.recorded_attempts, attempts, observed, states, stop, now)
    deletions, next_deletion = _unneeded_jobs(attempts, observed, plan.retention, now)
    reads, later_reads = _reads_of_unwatched_pods(attempts, plan, observed, now)
    events_to_read = [state.events_to_read for state in states.values() if state.events_to_read]
    # Events that are to be read now are among the actions.
    requeue_at = _earliest(
        situation.active_until if is_active else None,
        *(state.until for state in states.values()),
        *(events.read_at for events in events_to_read if events.read_at > now),
        *(pause.until for pause in pauses.values()),
        *later_reads,
        next_deletion,
    )
    return Decision(progress_status(plan, status, progress), (*reads, *actions, *deletions), requeue_at)


def _reads_of_unwatched_pods(
    attempts: Iterable[Attempt], plan: Plan, observed: Observed, now: datetime
) -> tuple[tuple[ReadPods, ...], list[datetime]]:
    """Return the action that reads the unwatched pods that are due, if any, and when to read the other ones."""
    due_pods: list[ObservedPod] = []
    later_reads: list[datetime] = []
    for pod in unwatched_pods(attempts, plan, observed):
        read_at = observed.next_reads[pod.key.uid]
        if read_at is None or read_at <= now:
            due_pods.append(pod)
        else:
            later_reads.append(read_at)
    actions = (ReadPods(tuple(due_pods)),) if due_pods else ()
    return actions, later_reads


@dataclass(frozen=True)
class _Pause:
    """Describe why the next attempt at a case does not start yet, and the latest end of this pause."""

    until: datetime
    reason: str


def _pause_before_next(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> _Pause | None:
    """Return why the attempt that follows `attempt` does not start yet; None if it may, or if no attempt follows."""
    if not _awaits_retry(attempt):
        return None
    next_start = datetime.fromisoformat(attempt.not_before) if attempt.not_before else now
    if next_start > now:
        number = attempt.number + 1
        reason = f"attempt {number} starts at {attempt.not_before}, after {attempt.reason}: {attempt.message}"
        return _Pause(next_start, f"{attempt.case}: {reason}")
    ending = find_ending_pod(attempt, plan, observed, now)
    if ending is None:
        return None
    pod, until = ending
    reason = f"pod {pod.key.name} of the previous attempt has not ended yet"
    if pod.still_running:
        reason += f" ({explain_still_running(pod)})"
    return _Pause(until, f"{attempt.case}: {reason}; the operator waits for it until {timestamp(until)} at most")


def _first_pending_reason(
    attempts: Iterable[Attempt], states: Mapping[str, AttemptState], pauses: Mapping[str, _Pause]
) -> str:
    """Return why the first waiting case waits; empty if none waits."""
    for attempt in attempts:
        state = states.get(attempt.case)
        if state and state.pending_reason and _in_flight(attempt):
            return state.pending_reason
        pause = pauses.get(attempt.case)
        if pause:
            return pause.reason
    return ""


def _in_flight(attempt: Attempt) -> bool:
    """Return True if the attempt has a Job and has not finished."""
    return bool(attempt.job) and not attempt.finished


def _awaits_retry(attempt: Attempt) -> bool:
    """Return True if the attempt has ended without a result, and another attempt at its case may follow."""
    return not attempt.job and not attempt.finished


def _advance(
    attempt: Attempt, state: AttemptState | None, plan: Plan, observed: Observed, stop: Stop | None, now: datetime
) -> Attempt:
    """Return the attempt for the new status: continued with its latest pod, failed, or prepared for a retry."""
    pod = observed.pod(attempt) if attempt.job else None
    if pod:
        location = {"pod": pod.key.name, "node": pod.node, "image": pod.image}
        known_location = {name: value for name, value in location.items() if value}  # an unscheduled pod has no node
        attempt = attempt.model_copy(update=known_location)
    if state is None:
        # The attempt is not in flight.
        return attempt
    if state.failure:
        return _after_failure(attempt, state.failure, plan, stop, now)
    can_be_discarded = state.phase is not AttemptPhase.OVER  # else its result is being read
    if can_be_discarded and stop and stop.discard_reason:
        detail = "the case in flight was discarded"
        if state.pending_reason:
            detail += f" while it waited. {state.pending_reason.rstrip('. ')}"
        return _fail(attempt, stop.discard_reason, stop.discard_reason.explain(detail), now)
    if can_be_discarded and plan.policy.suspend:
        message = AttemptReason.SUSPENDED.explain("the case in flight was discarded")
        return _without_job(attempt, AttemptReason.SUSPENDED, message)
    job = observed.job(attempt)
    return attempt.model_copy(update={"job_uid": job.key.uid}) if job else attempt


def _after_failure(attempt: Attempt, failure: AttemptFailure, plan: Plan, stop: Stop | None, now: datetime) -> Attempt:
    """Prepare a failed attempt for a retry; if no retry is left, mark it as finished."""
    if stop or failure.reason.retry_limit not in _retries_left(attempt, plan):
        return _fail(attempt, failure.reason, failure.message, now)
    was_disrupted = failure.reason.retry_limit is RetryLimit.DISRUPTION
    fields = {
        "not_before": timestamp(now + retry_delay(attempt.retries + attempt.disruptions)),
        "retries": attempt.retries if was_disrupted else attempt.retries + 1,
        "disruptions": attempt.disruptions + 1 if was_disrupted else attempt.disruptions,
    }
    return _without_job(attempt.model_copy(update=fields), failure.reason, failure.message)


def _retries_left(attempt: Attempt, plan: Plan) -> frozenset[RetryLimit]:
    """Return the retry limits that the attempts at this case have not reached yet."""
    retries_left = {
        RetryLimit.INFRASTRUCTURE: plan.policy.infrastructure_retries - attempt.retries,
        RetryLimit.DISRUPTION: plan.policy.disruption_retries - attempt.disruptions,
    }
    return frozenset(limit for limit, number in retries_left.items() if number > 0)


def _fail(attempt: Attempt, reason: AttemptReason, message: str, now: datetime) -> Attempt:
    """Return the attempt as finished and failed."""
    return _as_last_attempt(attempt, now).model_copy(update={"reason": reason, "message": message})


def _as_last_attempt(attempt: Attempt, now: datetime) -> Attempt:
    """Return the attempt as finished at `now`."""
    return attempt.model_copy(update={"finished": True, "completion_time": timestamp(now)})


def _without_job(attempt: Attempt, reason: AttemptReason, message: str) -> Attempt:
    """Return the attempt without its Job, so that another attempt can follow."""
    return attempt.model_copy(update=NO_JOB | {"reason": reason, "message": message})


def _next_attempt(previous: Attempt, plan: Plan, now: datetime) -> Attempt:
    """Return the attempt that follows `previous` at the same case, before its Job is created.

    It keeps the reason and message of `previous`, which explain this retry until it ends itself.
    """
    number = previous.number + 1
    metadata = plan.metadata
    fields = {
        "number": number,
        "job": attempt_name(metadata.name, metadata.uid, previous.case, number),
        "start_time": timestamp(now),
        "not_before": None,
    }
    return previous.model_copy(update=NO_JOB | fields)


def _start_cases(
    plan: Plan, attempts: dict[str, Attempt], measured_cases: frozenset[str], observed: Observed, now: datetime
) -> dict[str, Attempt]:
    """Return the attempts to start now, by case, as many as the parallelism of the run allows."""
    free_slots = plan.policy.parallelism - sum(_in_flight(attempt) for attempt in attempts.values())
    metadata = plan.metadata
    started: dict[str, Attempt] = {}
    for case in plan.names:
        if len(started) >= free_slots:
            break
        if case in measured_cases:
            continue
        previous = attempts.get(case)
        if previous is None:
            job = attempt_name(metadata.name, metadata.uid, case, 1)
            started[case] = Attempt(case=case, number=1, job=job, start_time=timestamp(now))
            continue
        if _awaits_retry(previous) and not _pause_before_next(previous, plan, observed, now):
            started[case] = _next_attempt(previous, plan, now)
    return started


def _actions(
    plan: Plan,
    recorded_attempts: tuple[Attempt, ...],
    attempts: tuple[Attempt, ...],
    observed: Observed,
    states: Mapping[str, AttemptState],
    stop: Stop | None,
    now: datetime,
) -> tuple[Action, ...]:
    """Return the next action for each attempt in flight that needs one.

    `recorded_attempts` are from the status before this decision.
    """
    recorded_cases = {attempt.case for attempt in recorded_attempts}
    actions: list[Action] = []
    for attempt in attempts:
        if not _in_flight(attempt):
            continue
        state = states.get(attempt.case)
        if state and state.phase is AttemptPhase.OVER and state.failure is None:
            # Nothing is retried once the run stops.
            actions.append(Collect(attempt, frozenset() if stop else _retries_left(attempt, plan)))
        elif state and state.suspected_failure:
            actions.append(ConfirmFailure(attempt, state.suspected_failure))
        elif state and state.reads_queue:
            actions.append(ReadQueue(attempt))
        elif state and state.events_to_read and now >= state.events_to_read.read_at:
            actions.append(ReadEvents(attempt, state.events_to_read))
        elif observed.job(attempt) is None and attempt.job_uid is None:
            # No Job of this attempt was ever recorded. (If a recorded Job is gone, the attempt is OVER.)
            # A case without a recorded attempt has had no Job, so it can have no result.
            is_first = attempt.case not in recorded_cases
            actions.append(CreateJob(attempt.case, attempt.number, is_first=is_first))
    return tuple(actions)


def _unneeded_jobs(
    attempts: tuple[Attempt, ...], observed: Observed, retention: RunRetention, now: datetime
) -> tuple[tuple[DeleteJob, ...], datetime | None]:
    """Return a deletion for each Job that is no longer needed, and when the next Job has to be deleted.

    A failed Job, whose pod has a log that may explain the failure, is kept until `retention` is exceeded.
    """
    job_uids = {attempt.job: observed.job_uid(attempt) for attempt in attempts if _in_flight(attempt)}
    unneeded, failed = [], []  # `failed` Jobs have ended, and their case has no valid result
    for job in observed.jobs.values():
        # If the attempt has no UID yet, its Job may be this one or somebody else's: `apply` finds out.
        may_be_in_flight = job.key.name in job_uids and job_uids[job.key.name] in {job.key.uid, None}
        if may_be_in_flight:
            continue
        result = observed.results.get(job.case)
        if result is not None and not result.log_is_needed:
            unneeded.append(job)
        elif job.has_ended:
            failed.append(job)
        elif not observed.has_only_ended_pods(job):
            # No attempt in flight needs the pod that runs or may follow: it would only hold devices.
            unneeded.append(job)
        # Otherwise the Job controller is about to report the Job's end.
    failed.sort(key=lambda job: (job.ended_at or job.created_at, job.key.name), reverse=True)  # newest first
    unneeded += failed[retention.failed_jobs :]
    next_deletion: datetime | None = None
    for job in failed[: retention.failed_jobs]:
        delete_at = (job.ended_at or job.created_at) + retention.failed_jobs_time
        if now >= delete_at:
            unneeded.append(job)
        else:
            next_deletion = _earliest(next_deletion, delete_at)
    return tuple(_delete_job(job, observed) for job in unneeded), next_deletion


def _delete_job(job: ObservedJob, observed: Observed) -> DeleteJob:
    """Return the deletion of a Job, with the name of its case's result, if any: without it, `apply` keeps the Job."""
    result = observed.results.get(job.case)
    return DeleteJob(job.key.name, job.key.uid, result.name if result else None)


def _decide_after_end(
    retention: RunRetention, status: BenchmarkRunStatus, observed: Observed, finish_time: datetime, now: datetime
) -> Decision:
    """Return the decision on a finished run: delete Jobs that are not needed, and the run after its time to live."""
    deletions, next_deletion = _unneeded_jobs((), observed, retention, now)  # no attempt is in flight
    expires_at = finish_time + retention.ttl if retention.ttl is not None else None
    if expires_at is not None and now >= expires_at:
        return Decision(status, (*deletions, DeleteRun()))
    return Decision(status, deletions, requeue_at=_earliest(expires_at, next_deletion))


def _start_active_time(status: BenchmarkRunStatus, pods: Iterable[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Set the start of the run's active time to the first start of a container of `pods`, unless it is set."""
    if status.active_start_time is not None:
        return status
    # A node's clock may be wrong: a container starts neither before the API server created its pod, nor after now.
    starts = [max(pod.started_at, pod.created_at) for pod in pods if pod.started_at]
    start = min([*starts, now])
    return status.model_copy(update={"active_start_time": timestamp(start)})


def _stop_active_time(status: BenchmarkRunStatus, pods: Sequence[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Stop the run's active time: add what has passed since `active_start_time`, up to the last container's end."""
    if status.active_start_time is None:
        return status
    start = datetime.fromisoformat(status.active_start_time)
    # A node's clock may be ahead, but no container ended later than now.
    ends = [min(pod.ended_at or now, now) for pod in pods if pod.started_at]
    elapsed = max(ends, default=now) - start
    # A node's clock may be wrong, so the end may seem to be before the start.
    seconds = status.active_seconds + max(0, round(elapsed.total_seconds()))
    return status.model_copy(update={"active_start_time": None, "active_seconds": seconds})


def _maximum_active_time(plan: Plan) -> timedelta:
    """Return how long the run may be active: as its policy sets, else a default for the number of its cases."""
    limit = Wait.ACTIVE.limit.maximum_time(plan.policy)
    if limit is not None:
        return limit
    # By default, a run may be active as long as all possible attempts at all its cases can take.
    rounds_of_cases = math.ceil(len(plan.names) / plan.policy.parallelism)
    maximum_attempts = 1 + plan.policy.infrastructure_retries + plan.policy.disruption_retries
    return rounds_of_cases * maximum_attempts * plan.runner_limit + BETWEEN_CASES


def _active_until(plan: Plan, status: BenchmarkRunStatus) -> datetime | None:
    """Return when the run reaches its active deadline; None if it is not active."""
    if status.active_start_time is None:
        return None
    remaining = _maximum_active_time(plan) - timedelta(seconds=status.active_seconds)
    return datetime.fromisoformat(status.active_start_time) + remaining


def _stop_of_run(plan: Plan, status: BenchmarkRunStatus, now: datetime) -> Stop | None:
    """Return why no further case starts if the run was cancelled or was active too long; else None."""
    if plan.policy.cancel:
        message = "the run was cancelled; stored results are kept"
        return Stop(ConditionReason.CANCELLED, message, discard_reason=AttemptReason.CANCELLED)
    until = _active_until(plan, status)
    # The time may be used up while the run is not active; then `until` is None.
    is_used_up = timedelta(seconds=status.active_seconds) >= _maximum_active_time(plan)
    if is_used_up or (until and now >= until):
        reason = ConditionReason.ACTIVE_DEADLINE_EXCEEDED
        message = reason.explain("the run was active for longer than its deadline")
        return Stop(reason, message, discard_reason=AttemptReason.ACTIVE_DEADLINE_EXCEEDED)
    return None


def _stop_after_missed_start(attempts: Iterable[Attempt]) -> Stop | None:
    """Return the reason to stop the run if one of its cases missed the deadline for its start; None if none did."""
    for attempt in attempts:
        if attempt.reason == AttemptReason.START_DEADLINE_EXCEEDED:
            # The next case would wait as long in vain.
            return Stop(ConditionReason.START_DEADLINE_EXCEEDED, f"case {attempt.case}: {attempt.message}")
    return None


def _earliest(*times: datetime | None) -> datetime | None:
    """Return the earliest time, ignoring None."""
    return min((time for time in times if time is not None), default=None)
