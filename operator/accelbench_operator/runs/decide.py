"""Decide what happens next with a run: a pure function of its spec, its status, the cluster's objects and the time.

It calls no API: `apply` carries out its actions, and may be killed between any two requests. Nothing is lost because

- an attempt is recorded in the status before its Job is created, under a name of its own, and stays there until its
  result is stored; from then on the name of its case is enough;
- a Job that no attempt in flight names is deleted, unless it ended and its log may still be wanted;
- every wait ends: `requeue_at` is when to look again even if no watch reports anything until then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.api.run import Attempt, BenchmarkRunStatus
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name
from accelbench_operator.runs.accept import Plan, Refused
from accelbench_operator.runs.actions import (
    Action,
    Collect,
    ConfirmFailure,
    CreateJob,
    DeleteJob,
    DeleteRun,
    ReadEvents,
    ReadQueue,
)
from accelbench_operator.runs.attempts import AttemptPhase, AttemptState, Observed, find_ending_pod, state_of
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import ObservedPod
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
"""Phases in which a case makes its run Running; a case that has ended is being collected."""

NO_JOB = {"job": "", "job_uid": None, "pod": None, "node": None, "image": None}


@dataclass(frozen=True)
class Decision:
    """Hold the status to write first, the actions to carry out then, and when to look again at the latest."""

    status: BenchmarkRunStatus
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None


def decide(
    plan: Plan | Refused, status: BenchmarkRunStatus, observed: Observed, now: datetime, generation: int
) -> Decision:
    """Return what happens next; `status` is the latest in the API server, never older than any of the run's Jobs."""
    if finished := finished_at(status):
        updated = with_generation(status, generation)
        return _after_the_end(plan, updated, observed, finished, now)
    if isinstance(plan, Refused):
        refused = refused_status(plan.message, status, now, generation)
        return _after_the_end(plan, refused, observed, now, now)
    situation = _assess(plan, status, observed, now)
    return _conclude(situation, *_advance_all(situation))


@dataclass(frozen=True)
class _Situation:
    """Describe a run that has not finished, before anything is decided."""

    plan: Plan
    observed: Observed
    now: datetime
    recorded: tuple[Attempt, ...]
    """The attempts of the status."""
    status: BenchmarkRunStatus
    """With its active time up to date."""
    states: Mapping[str, AttemptState]
    """By case, of attempts in flight without a result."""
    running: frozenset[str]
    """Cases whose container runs."""
    pods: Sequence[ObservedPod]
    """The pods that report for attempts in flight."""
    measured: frozenset[str]
    """Cases with a result, including those whose result was deleted since."""

    @property
    def active_until(self) -> datetime | None:
        return _active_until(self.plan, self.status)


def _assess(plan: Plan, status: BenchmarkRunStatus, observed: Observed, now: datetime) -> _Situation:
    """Return how far the attempts in flight have come, with the run's active time started or stopped."""
    in_flight = [attempt for attempt in status.attempts if _in_flight(attempt)]
    states = {
        attempt.case: state_of(attempt, plan, observed, now)
        for attempt in in_flight
        if attempt.case not in observed.results
    }
    running = frozenset(
        case for case, state in states.items() if state.phase is AttemptPhase.RUNNING and state.failure is None
    )
    pods = [pod for attempt in in_flight if (pod := observed.pod(attempt.job))]
    running_pods = [pod for pod in pods if pod.case in running]
    return _Situation(
        plan=plan,
        observed=observed,
        now=now,
        recorded=status.attempts,
        status=_start_clock(status, running_pods, now) if running else _stop_clock(status, pods, now),
        states=states,
        running=running,
        pods=pods,
        measured=frozenset(observed.results.keys() | status.measured_cases),
    )


def _advance_all(situation: _Situation) -> tuple[tuple[Attempt, ...], Stop | None]:
    """Return the attempts to record, in the plan's order, and why no further case is started, if there is a reason."""
    plan, observed, now = situation.plan, situation.observed, situation.now
    stop = _stop_of_run(plan, situation.status, now) or _late_start_stop(situation.recorded)
    attempts = {
        attempt.case: _advance(attempt, situation.states.get(attempt.case), plan, observed, stop, now)
        for attempt in situation.recorded
        if attempt.case not in situation.measured
    }
    if stop := stop or _late_start_stop(attempts.values()):
        # No other attempt follows one that failed.
        failed = [attempt for attempt in attempts.values() if attempt.reason and not attempt.job]
        attempts |= {attempt.case: _with_end(attempt, now) for attempt in failed if not attempt.finished}
    if stop is None and not plan.policy.suspend:
        attempts |= _start_cases(plan, attempts, situation.measured, observed, now)
    return tuple(attempts[name] for name in plan.names if name in attempts), stop


def _conclude(situation: _Situation, attempts: tuple[Attempt, ...], stop: Stop | None) -> Decision:
    """Return the status, the actions and the next look that follow from the attempts."""
    plan, observed, states, now = situation.plan, situation.observed, situation.states, situation.now
    in_flight = {attempt.case for attempt in attempts if _in_flight(attempt)}
    # A case that was running may have been discarded just now.
    active = not in_flight.isdisjoint(situation.running)
    waits = {attempt.case: wait for attempt in attempts if (wait := _wait_before_next(attempt, plan, observed, now))}
    progress = RunProgress(
        attempts=attempts,
        measured=tuple(name for name in plan.names if name in situation.measured),
        results=observed.results,
        now=now,
        stop=stop,
        busy=any(states[case].phase in BUSY for case in in_flight & states.keys()),
        pending=next(_pending_reasons(attempts, states, waits), ""),
    )
    status = situation.status if active else _stop_clock(situation.status, situation.pods, now)
    questions = [state.question for state in states.values() if state.question]
    return Decision(
        progress_status(plan, status, progress),
        (
            *_actions(plan, situation.recorded, attempts, observed, states, stop, now),
            *_unneeded_jobs(attempts, observed),
        ),
        _earliest(
            situation.active_until if active else None,
            *(state.until for state in states.values()),
            *(question.at for question in questions if question.at > now),
            *(wait.until for wait in waits.values()),
        ),
    )


@dataclass(frozen=True)
class _Wait:
    """Describe why the next attempt at a case is not made yet, and until when at the latest."""

    until: datetime
    why: str


def _wait_before_next(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> _Wait | None:
    """Return what a case between two attempts waits for: a pause after a failure, then the end of the earlier pod."""
    if attempt.job or attempt.finished:
        return None
    if attempt.not_before and (start := datetime.fromisoformat(attempt.not_before)) > now:
        number = attempt.number + 1
        reason = f"attempt {number} starts at {attempt.not_before}, after {attempt.reason}: {attempt.message}"
        return _Wait(start, f"{attempt.case}: {reason}")
    if ending := find_ending_pod(attempt.case, plan, observed, now):
        pod, until = ending
        reason = f"pod {pod.key.name} of the previous attempt has not ended yet"
        return _Wait(until, f"{attempt.case}: {reason}; the operator waits for it until {timestamp(until)} at most")
    return None


def _pending_reasons(
    attempts: Iterable[Attempt], states: Mapping[str, AttemptState], waits: Mapping[str, _Wait]
) -> Iterator[str]:
    """Yield why each case that does not run waits."""
    for attempt in attempts:
        if (state := states.get(attempt.case)) and state.pending and _in_flight(attempt):
            yield state.pending
        elif wait := waits.get(attempt.case):
            yield wait.why


def _in_flight(attempt: Attempt) -> bool:
    return bool(attempt.job) and not attempt.finished


def _advance(
    attempt: Attempt, state: AttemptState | None, plan: Plan, observed: Observed, stop: Stop | None, now: datetime
) -> Attempt:
    """Return the attempt to record: failed, set aside for another attempt, or with its Job and pod."""
    if attempt.job and (pod := observed.pod(attempt.job)):
        place = {"pod": pod.key.name, "node": pod.node, "image": pod.image}
        attempt = attempt.model_copy(update={name: value for name, value in place.items() if value})
    if state is None:
        return attempt
    if state.failure:
        return _after_failure(attempt, state.failure, plan, stop, now)
    if state.phase is not AttemptPhase.OVER and stop and stop.discards:
        return _fail(attempt, stop.discards, stop.discards.explain("the case in flight was discarded"), now)
    if state.phase is not AttemptPhase.OVER and plan.policy.suspend:
        discarded = AttemptReason.SUSPENDED.explain("the case in flight was discarded")
        return _set_aside(attempt, AttemptReason.SUSPENDED, discarded)
    job = observed.jobs.get(attempt.job)
    return attempt.model_copy(update={"job_uid": job.key.uid}) if job else attempt


def _after_failure(attempt: Attempt, failure: AttemptFailure, plan: Plan, stop: Stop | None, now: datetime) -> Attempt:
    """Return the attempt set aside for a retry after a pause, or failed if none may follow."""
    policy = plan.policy
    if stop or not failure.reason.retried or attempt.retries >= policy.infrastructure_retries:
        return _fail(attempt, failure.reason, failure.message, now)
    delayed = attempt.model_copy(update={"not_before": timestamp(now + retry_delay(attempt.retries))})
    return _set_aside(delayed, failure.reason, failure.message)


def _fail(attempt: Attempt, reason: AttemptReason, message: str, now: datetime) -> Attempt:
    return _with_end(attempt, now).model_copy(update={"reason": reason, "message": message})


def _with_end(attempt: Attempt, now: datetime) -> Attempt:
    return attempt.model_copy(update={"finished": True, "completion_time": timestamp(now)})


def _set_aside(attempt: Attempt, reason: AttemptReason, message: str) -> Attempt:
    """Return the attempt without its Job, so that another attempt can follow."""
    return attempt.model_copy(update=NO_JOB | {"reason": reason, "message": message})


def _next_attempt(attempt: Attempt, plan: Plan, now: datetime) -> Attempt:
    """Return the next attempt at the case; it counts as a retry after a failure, but not after a suspension."""
    number = attempt.number + 1
    metadata = plan.metadata
    job = attempt_name(metadata.name, metadata.uid, attempt.case, number)
    fields = {
        "number": number,
        "job": job,
        "start_time": timestamp(now),
        "retries": attempt.retries + (attempt.not_before is not None),
        "not_before": None,
    }
    return attempt.model_copy(update=NO_JOB | fields)


def _start_cases(
    plan: Plan, attempts: dict[str, Attempt], measured: frozenset[str], observed: Observed, now: datetime
) -> dict[str, Attempt]:
    """Return new attempts by case, in the plan's order: first and further ones, as many as `parallelism` allows."""
    free_slots = plan.policy.parallelism - sum(_in_flight(attempt) for attempt in attempts.values())
    metadata = plan.metadata
    started: dict[str, Attempt] = {}
    for case in plan.names:
        if len(started) >= free_slots:
            break
        previous = attempts.get(case)
        if case in measured or (previous and (previous.job or previous.finished)):
            continue
        if previous and _wait_before_next(previous, plan, observed, now):
            continue
        job = attempt_name(metadata.name, metadata.uid, case, 1)
        first = Attempt(case=case, number=1, job=job, start_time=timestamp(now))
        started[case] = _next_attempt(previous, plan, now) if previous else first
    return started


def _actions(
    plan: Plan,
    recorded: tuple[Attempt, ...],
    attempts: tuple[Attempt, ...],
    observed: Observed,
    states: Mapping[str, AttemptState],
    stop: Stop | None,
    now: datetime,
) -> tuple[Action, ...]:
    """Return at most one action for each attempt in flight; `recorded` are the attempts before this decision."""
    retries = plan.policy.infrastructure_retries
    recorded_cases = {attempt.case for attempt in recorded}
    actions: list[Action] = []
    for attempt in attempts:
        if not _in_flight(attempt):
            continue
        state = states.get(attempt.case)
        if state and state.phase is AttemptPhase.OVER and state.failure is None:
            actions.append(Collect(attempt, last=stop is not None or attempt.retries >= retries))
        elif state and state.suspected:
            actions.append(ConfirmFailure(attempt, state.suspected))
        elif state and state.reads_queue:
            actions.append(ReadQueue(attempt))
        elif state and state.question and now >= state.question.at:
            actions.append(ReadEvents(attempt, state.question))
        elif attempt.job not in observed.jobs and attempt.job_uid is None:
            actions.append(CreateJob(attempt.case, attempt.number, is_first=attempt.case not in recorded_cases))
    return tuple(actions)


def _unneeded_jobs(attempts: tuple[Attempt, ...], observed: Observed) -> tuple[DeleteJob, ...]:
    """Return deletions of Jobs whose case has a result, and of running Jobs that no attempt in flight names.

    Other Jobs that have ended stay for their logs, and so does one whose result is incomplete.
    """
    jobs_in_flight = {attempt.job for attempt in attempts if _in_flight(attempt)}
    deletions = []
    for job in observed.jobs.values():
        result = observed.results.get(job.case)
        if result and (result.complete or not job.ended):
            deletions.append(DeleteJob(job.key.name, job.key.uid, result.name))
        elif not result and job.key.name not in jobs_in_flight and not job.ended:
            deletions.append(DeleteJob(job.key.name, job.key.uid))
    return tuple(deletions)


def _after_the_end(
    plan: Plan | Refused, status: BenchmarkRunStatus, observed: Observed, finished: datetime, now: datetime
) -> Decision:
    """Return what is left to do for a finished run: to delete Jobs, and the run once its time to live is over."""
    leftovers = _unneeded_jobs((), observed)
    ttl = plan.ttl_seconds
    if ttl is None:
        return Decision(status, leftovers)
    until = finished + timedelta(seconds=ttl)
    return Decision(status, (*leftovers, DeleteRun()) if now >= until else leftovers, until if now < until else None)


def _start_clock(status: BenchmarkRunStatus, pods: Iterable[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Start the run's active time at the start of the first container, unless it is running already.

    A node's clock may be wrong, so the start is not before the pod's creation, and not after now.
    """
    if status.active_start_time is not None:
        return status
    start = min((max(pod.running, pod.created) for pod in pods if pod.running), default=now)
    start = min(start, now)
    return status.model_copy(update={"active_start_time": timestamp(start)})


def _stop_clock(status: BenchmarkRunStatus, pods: Sequence[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Stop the run's active time at the end of the last pod, or now if a pod that started has no end.

    Time after the last pod's end, for example while no operator ran, does not count.
    """
    if status.active_start_time is None:
        return status
    start = datetime.fromisoformat(status.active_start_time)
    ends = [pod.ended or now for pod in pods if pod.running]
    elapsed = max(ends, default=now) - start
    seconds = status.active_seconds + max(0, round(elapsed.total_seconds()))
    return status.model_copy(update={"active_start_time": None, "active_seconds": seconds})


def _active_limit(plan: Plan) -> timedelta:
    """Return the maximum active time: that of the policy, else of all cases with all their retries."""
    if (limit := Wait.ACTIVE.limit.of(plan.policy)) is not None:
        return limit
    turns = -(-len(plan.names) // plan.policy.parallelism) * (1 + plan.policy.infrastructure_retries)
    return turns * plan.pod_deadline + BETWEEN_CASES


def _active_until(plan: Plan, status: BenchmarkRunStatus) -> datetime | None:
    """Return when a run that stays active reaches its active deadline; None while it is not active."""
    if status.active_start_time is None:
        return None
    return (
        datetime.fromisoformat(status.active_start_time)
        + _active_limit(plan)
        - timedelta(seconds=status.active_seconds)
    )


def _stop_of_run(plan: Plan, status: BenchmarkRunStatus, now: datetime) -> Stop | None:
    """Return why the whole run stops: it was cancelled, or its active deadline is over."""
    if plan.policy.cancel:
        message = "the run was cancelled; stored results are kept"
        return Stop(ConditionReason.CANCELLED, message, AttemptReason.CANCELLED)
    until = _active_until(plan, status)
    is_used_up = timedelta(seconds=status.active_seconds) >= _active_limit(plan)
    if is_used_up or (until and now >= until):
        reason = ConditionReason.ACTIVE_DEADLINE_EXCEEDED
        message = reason.explain("the run was active for longer than its deadline")
        return Stop(reason, message, AttemptReason.ACTIVE_DEADLINE_EXCEEDED)
    return None


def _late_start_stop(attempts: Iterable[Attempt]) -> Stop | None:
    """Return why to stop if a case did not start in time, because the next case would wait as long in vain."""
    failed = next((attempt for attempt in attempts if attempt.reason == AttemptReason.START_DEADLINE_EXCEEDED), None)
    if failed is None:
        return None
    return Stop(ConditionReason.START_DEADLINE_EXCEEDED, f"case {failed.case}: {failed.message}")


def _earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
