"""What happens next with a run: a pure function of what is wanted, what was recorded, what is there, and the time.

It knows no API: `apply` does what it says, and may be killed between any two calls. That holds together because

- an attempt is recorded in the status before its Job is created, under a name that only it can have, and until its
  result is stored: from then on the name of its case is enough;
- a Job that no attempt in flight names is deleted, unless it ended and its log may still be wanted;
- every wait has an end: `requeue_at` is when to look again even if nothing is heard until then.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.api.run import Attempt, BenchmarkRunStatus
from accelbench.document import timestamp
from accelbench.plan.names import attempt_name
from accelbench_operator.runs.accept import Plan, Refused
from accelbench_operator.runs.actions import Action, Ask, AskQueue, Collect, Confirm, CreateJob, DeleteJob, DeleteRun
from accelbench_operator.runs.attempts import AttemptPhase, AttemptState, Observed, state_of, still_ending
from accelbench_operator.runs.failure import AttemptFailure
from accelbench_operator.runs.observed import ObservedPod
from accelbench_operator.runs.status import (
    RunProgress,
    Stop,
    finished_at,
    progress_status,
    refused_status,
    seen_status,
)
from accelbench_operator.runs.waits import BETWEEN_CASES, Wait, retry_delay

BUSY = frozenset({AttemptPhase.RUNNING, AttemptPhase.OVER})
"""While one of its cases is in these, a run is running: what has ended is being collected."""

NO_JOB = {"job": "", "job_uid": None, "pod": None, "node": None, "image": None}


@dataclass(frozen=True)
class Decision:
    """The status to write first, then what to do, in order, and when to look again at the latest."""

    status: BenchmarkRunStatus
    actions: tuple[Action, ...] = ()
    requeue_at: datetime | None = None


def decide(
    plan: Plan | Refused, status: BenchmarkRunStatus, observed: Observed, now: datetime, generation: int
) -> Decision:
    """What happens next; `status` is the run's as the API server has it now, never older than any of its Jobs."""
    if finished := finished_at(status):
        seen = seen_status(status, generation)
        return _after_the_end(plan, seen, observed, finished, now)
    if isinstance(plan, Refused):
        ended = refused_status(plan.message, status, now, generation)
        return _after_the_end(plan, ended, observed, now, now)
    return _under_way(plan, status, observed, now)


def _under_way(plan: Plan, status: BenchmarkRunStatus, observed: Observed, now: datetime) -> Decision:
    policy = plan.policy
    states = {
        attempt.case: state_of(attempt, plan, observed, now)
        for attempt in status.attempts
        if _in_flight(attempt) and attempt.case not in observed.results
    }
    running = {case for case, state in states.items() if state.phase is AttemptPhase.RUNNING and state.loss is None}
    pods = [pod for each in status.attempts if _in_flight(each) and (pod := observed.pod(each.job))]
    at_work = [pod for pod in pods if pod.case in running]
    status = _clock(status, at_work, now) if running else _stopped(status, pods, now)
    active_until = _active_until(plan, status)
    stop = _stop(plan, status, now) or _start_stop(status.attempts)
    known = observed.results.keys() | status.measured_cases
    measured = tuple(name for name in plan.names if name in known)
    attempts = {
        attempt.case: _advance(attempt, states.get(attempt.case), plan, observed, stop, now)
        for attempt in status.attempts
        if attempt.case not in known
    }
    if stop := stop or _start_stop(attempts.values()):
        # No other attempt follows one that was lost.
        lost = [attempt for attempt in attempts.values() if attempt.reason and not attempt.job]
        attempts |= {attempt.case: _over(attempt, now) for attempt in lost if not attempt.finished}
    if stop is None and not policy.suspend:
        attempts |= _start(plan, attempts, known, observed, now)
    moved = tuple(attempts[name] for name in plan.names if name in attempts)
    # What was running may have been discarded just now.
    in_flight = {attempt.case for attempt in moved if _in_flight(attempt)}
    active = not in_flight.isdisjoint(running)
    waits = {attempt.case: wait for attempt in moved if (wait := _wait(attempt, plan, observed, now))}
    progress = RunProgress(
        attempts=moved,
        measured=measured,
        results=observed.results,
        now=now,
        stop=stop,
        busy=any(states[case].phase in BUSY for case in in_flight & states.keys()),
        pending=next(_pending(moved, states, waits), ""),
    )
    new = progress_status(plan, status if active else _stopped(status, pods, now), progress)
    return Decision(
        new,
        (*_actions(plan, status.attempts, moved, observed, states, stop, now), *_superfluous(moved, observed)),
        _earliest(
            active_until if active else None,
            *(state.until for state in states.values()),
            *(question.at for state in states.values() if (question := state.question) and question.at > now),
            *(wait.until for wait in waits.values()),
        ),
    )


@dataclass(frozen=True)
class _Wait:
    """Why the next attempt at a case is not made yet, and until when at the latest."""

    until: datetime
    why: str


def _wait(attempt: Attempt, plan: Plan, observed: Observed, now: datetime) -> _Wait | None:
    """Of a case between two attempts: for a while after a loss, and for the pod of the attempt before."""
    if attempt.job or attempt.finished:
        return None
    if attempt.not_before and (start := datetime.fromisoformat(attempt.not_before)) > now:
        number = attempt.number + 1
        why = f"attempt {number} starts at {attempt.not_before}, after {attempt.reason}: {attempt.message}"
        return _Wait(start, f"{attempt.case}: {why}")
    if ending := still_ending(attempt.case, plan, observed, now):
        pod, until = ending
        why = f"pod {pod.key.name} of the previous attempt has not ended yet"
        return _Wait(until, f"{attempt.case}: {why}; the operator waits for it until {timestamp(until)} at most")
    return None


def _pending(
    attempts: Iterable[Attempt], states: Mapping[str, AttemptState], waits: Mapping[str, _Wait]
) -> Iterator[str]:
    """What each case that does not run waits for."""
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
    """The attempt as it is to be recorded: settled, replaced by the next one, discarded, or as it was."""
    if attempt.job and (pod := observed.pod(attempt.job)):
        told = {"pod": pod.key.name, "node": pod.node, "image": pod.image}
        attempt = attempt.model_copy(update={name: value for name, value in told.items() if value})
    if state is None:
        return attempt
    if state.loss:
        return _after_loss(attempt, state.loss, plan, stop, now)
    if state.phase is not AttemptPhase.OVER and stop and stop.discards:
        return _settled(attempt, stop.discards, stop.discards.after("the case in flight was discarded"), now)
    if state.phase is not AttemptPhase.OVER and plan.policy.suspend:
        discarded = AttemptReason.SUSPENDED.after("the case in flight was discarded")
        return _set_aside(attempt, AttemptReason.SUSPENDED, discarded)
    job = observed.jobs.get(attempt.job)
    return attempt.model_copy(update={"job_uid": job.key.uid}) if job else attempt


def _after_loss(attempt: Attempt, loss: AttemptFailure, plan: Plan, stop: Stop | None, now: datetime) -> Attempt:
    policy = plan.policy
    if stop or not loss.reason.retried or attempt.retries >= policy.infrastructure_retries:
        return _settled(attempt, loss.reason, loss.message, now)
    again = attempt.model_copy(update={"not_before": timestamp(now + retry_delay(attempt.retries))})
    return _set_aside(again, loss.reason, loss.message)


def _settled(attempt: Attempt, reason: AttemptReason, message: str, now: datetime) -> Attempt:
    return _over(attempt, now).model_copy(update={"reason": reason, "message": message})


def _over(attempt: Attempt, now: datetime) -> Attempt:
    return attempt.model_copy(update={"finished": True, "completion_time": timestamp(now)})


def _set_aside(attempt: Attempt, reason: AttemptReason, message: str) -> Attempt:
    return attempt.model_copy(update=NO_JOB | {"reason": reason, "message": message})


def _next(attempt: Attempt, plan: Plan, now: datetime) -> Attempt:
    number = attempt.number + 1
    metadata = plan.metadata
    job = attempt_name(metadata.name, metadata.uid, attempt.case, number)
    fresh = {
        "number": number,
        "job": job,
        "start_time": timestamp(now),
        "retries": attempt.retries + (attempt.not_before is not None),
        "not_before": None,
    }
    return attempt.model_copy(update=NO_JOB | fresh)


def _start(
    plan: Plan, attempts: dict[str, Attempt], measured: set[str], observed: Observed, now: datetime
) -> dict[str, Attempt]:
    """Attempts at the next cases in order, as many as there is room for."""
    room = plan.policy.parallelism - sum(_in_flight(attempt) for attempt in attempts.values())
    metadata = plan.metadata
    started: dict[str, Attempt] = {}
    for case in plan.names:
        if len(started) >= room:
            break
        known = attempts.get(case)
        if case in measured or (known and (known.job or known.finished)):
            continue
        if known and _wait(known, plan, observed, now):
            continue
        job = attempt_name(metadata.name, metadata.uid, case, 1)
        first = Attempt(case=case, number=1, job=job, start_time=timestamp(now))
        started[case] = _next(known, plan, now) if known else first
    return started


def _actions(
    plan: Plan,
    before: tuple[Attempt, ...],
    attempts: tuple[Attempt, ...],
    observed: Observed,
    states: dict[str, AttemptState],
    stop: Stop | None,
    now: datetime,
) -> tuple[Action, ...]:
    retries = plan.policy.infrastructure_retries
    begun = {attempt.case for attempt in before}
    actions: list[Action] = []
    for attempt in attempts:
        if not _in_flight(attempt):
            continue
        state = states.get(attempt.case)
        if state and state.phase is AttemptPhase.OVER and state.loss is None:
            actions.append(Collect(attempt, last=stop is not None or attempt.retries >= retries))
        elif state and state.suspected:
            actions.append(Confirm(attempt, state.suspected))
        elif state and state.asks:
            actions.append(AskQueue(attempt))
        elif state and state.question and now >= state.question.at:
            actions.append(Ask(attempt, state.question))
        elif attempt.job not in observed.jobs and attempt.job_uid is None:
            actions.append(CreateJob(attempt.case, attempt.number, is_first=attempt.case not in begun))
    return tuple(actions)


def _superfluous(attempts: tuple[Attempt, ...], observed: Observed) -> tuple[DeleteJob, ...]:
    """Jobs that have served, and Jobs still going that no attempt in flight names; an ended one keeps its log."""
    wanted = {attempt.job for attempt in attempts if _in_flight(attempt)}
    deletions = []
    for job in observed.jobs.values():
        result = observed.results.get(job.case)
        if result and (result.complete or not job.ended):
            deletions.append(DeleteJob(job.key.name, job.key.uid, result.name))
        elif not result and job.key.name not in wanted and not job.ended:
            deletions.append(DeleteJob(job.key.name, job.key.uid))
    return tuple(deletions)


def _after_the_end(
    plan: Plan | Refused, status: BenchmarkRunStatus, observed: Observed, finished: datetime, now: datetime
) -> Decision:
    """A finished run stays as it is; what is left is to clean up, and to go when its time is over."""
    leftovers = _superfluous((), observed)
    ttl = plan.ttl_seconds
    if ttl is None:
        return Decision(status, leftovers)
    until = finished + timedelta(seconds=ttl)
    return Decision(status, (*leftovers, DeleteRun()) if now >= until else leftovers, until if now < until else None)


def _clock(status: BenchmarkRunStatus, running: Iterable[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Start the run's active time: it runs while a case does, by its pod's own clock, not while all of them wait.

    A node whose clock is wrong does not have it begin before there was a pod, nor after now.
    """
    if status.active_start_time is not None:
        return status
    began = min((max(pod.running, pod.created) for pod in running if pod.running), default=now)
    began = min(began, now)
    return status.model_copy(update={"active_start_time": timestamp(began)})


def _stopped(status: BenchmarkRunStatus, in_flight: Sequence[ObservedPod], now: datetime) -> BenchmarkRunStatus:
    """Stop it, when the last pod ended: an operator that was away meanwhile was not at work.

    A pod that was discarded or lost has no end of its own; for it, that is now.
    """
    if status.active_start_time is None:
        return status
    start = datetime.fromisoformat(status.active_start_time)
    ends = [pod.ended or now for pod in in_flight if pod.running]
    elapsed = max(ends, default=now) - start
    seconds = status.active_seconds + max(0, round(elapsed.total_seconds()))
    return status.model_copy(update={"active_start_time": None, "active_seconds": seconds})


def _active_limit(plan: Plan) -> timedelta:
    if (limit := Wait.ACTIVE.limit.of(plan.policy)) is not None:
        return limit
    turns = -(-len(plan.names) // plan.policy.parallelism) * (1 + plan.policy.infrastructure_retries)
    return turns * plan.pod_deadline + BETWEEN_CASES


def _active_until(plan: Plan, status: BenchmarkRunStatus) -> datetime | None:
    """When a run that stays active will have been so for too long; None while it is not active."""
    if status.active_start_time is None:
        return None
    return (
        datetime.fromisoformat(status.active_start_time)
        + _active_limit(plan)
        - timedelta(seconds=status.active_seconds)
    )


def _stop(plan: Plan, status: BenchmarkRunStatus, now: datetime) -> Stop | None:
    if plan.policy.cancel:
        message = "the run was cancelled; stored results are kept"
        return Stop(ConditionReason.CANCELLED, message, AttemptReason.CANCELLED)
    until = _active_until(plan, status)
    spent = timedelta(seconds=status.active_seconds) >= _active_limit(plan)
    if spent or (until and now >= until):
        reason = ConditionReason.ACTIVE_DEADLINE_EXCEEDED
        message = reason.after("the run was active for longer than its deadline")
        return Stop(reason, message, AttemptReason.ACTIVE_DEADLINE_EXCEEDED)
    return None


def _start_stop(attempts: Iterable[Attempt]) -> Stop | None:
    """Where one case found no node in time, the next would wait as long in vain."""
    late = next((attempt for attempt in attempts if attempt.reason == AttemptReason.START_DEADLINE_EXCEEDED), None)
    if late is None:
        return None
    return Stop(ConditionReason.START_DEADLINE_EXCEEDED, f"case {late.case}: {late.message}")


def _earliest(*times: datetime | None) -> datetime | None:
    return min((time for time in times if time is not None), default=None)
