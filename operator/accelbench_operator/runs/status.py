"""Derive the run's status from its attempts and results alone, so that a restarted operator derives the same status.

While attempts and results stay the same, the status stays the same, so it is not written again. Rows of comparisons are
reused, because results never change.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from accelbench import figures
from accelbench.api.reasons import AttemptReason, ConditionReason
from accelbench.api.result import Comparison, rank_comparisons
from accelbench.api.run import MAXIMUM_CONDITIONS, Attempt, BenchmarkRunStatus, CaseCounts, ComparisonStatus, Condition
from accelbench.document import on_one_line, shorten, timestamp
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.summary import Summary

MAXIMUM_COMPARISONS = 64
"""Maximum number of comparisons in a status."""
MAXIMUM_HEADLINE = 160
"""Maximum number of characters of `status.headline`."""
MAXIMUM_MESSAGE = 2048
"""Maximum number of characters of a condition's message."""
SHORT_MESSAGE = 256
"""Maximum characters of a message in a status that the API server has refused as too large."""
NOISY = "measured next to other load, as acceptNoise allows: an interval, but no certified verdict"
NAMED_CASES = 3
"""Maximum number of cases that a message names before it counts the others."""

Truth = Literal["True", "False", "Unknown"]
ConditionType = Literal["Accepted", "Finished", "Succeeded", "Reconciling", "Stalled"]
OWN_CONDITIONS: tuple[str, ...] = get_args(ConditionType)
"""Types of the conditions that the operator writes. The last two exist only while they are True."""


@dataclass(frozen=True)
class Stop:
    """Describe why no further case starts."""

    reason: ConditionReason
    message: str
    discard_reason: AttemptReason | None = None
    """Reason with which attempts in flight are discarded; None if they continue."""


@dataclass(frozen=True)
class RunProgress:
    """Hold the facts from which the status is derived."""

    attempts: tuple[Attempt, ...]
    """Attempts at cases without a result, in the plan's order."""
    measured_cases: tuple[str, ...]
    """Cases whose result was stored, in the plan's order; the result may have been deleted since."""
    results: Mapping[str, Summary]
    """Summaries of the results that exist, by case."""
    now: datetime
    stop: Stop | None
    is_busy: bool
    """True if a case runs, or has ended and its result is being read."""
    pending_reason: str
    """Reason of the first case that waits; empty if no case waits."""


@dataclass(frozen=True)
class ConditionState:
    """Hold the status, reason and message of a condition."""

    status: Truth
    reason: ConditionReason
    message: str


def finished_at(status: BenchmarkRunStatus) -> datetime | None:
    """Return when the run finished; None if it has not."""
    for condition in status.conditions:
        if condition.type == "Finished" and condition.status == "True":
            return datetime.fromisoformat(status.completion_time or condition.last_transition_time)
    return None


def may_be_corrected(status: BenchmarkRunStatus, generation: int) -> bool:
    """Return True if the run was refused before it started, and its spec has changed since.

    The CRD lets users correct a refused run that has not started (`rules.immutable_unless_refused`).
    """
    has_started = bool(status.attempts or status.measured_cases)
    return status.phase == ConditionReason.INVALID_SPEC and not has_started and status.observed_generation != generation


def before_refusal(status: BenchmarkRunStatus) -> BenchmarkRunStatus:
    """Return a refused run's status without the refusal, so that the operator plans the run's changed spec."""
    conditions = tuple(condition for condition in status.conditions if condition.type not in OWN_CONDITIONS)
    return status.model_copy(
        update={"conditions": conditions, "phase": "", "headline": "", "runner": None, "completion_time": None}
    )


def with_generation(status: BenchmarkRunStatus, generation: int) -> BenchmarkRunStatus:
    """Return the status with a new observed generation, also in the operator's own conditions.

    `kubectl wait` ignores conditions of an older generation.
    """
    conditions = []
    for condition in status.conditions:
        is_own = condition.type in OWN_CONDITIONS
        conditions.append(condition.model_copy(update={"observed_generation": generation}) if is_own else condition)
    return status.model_copy(update={"observed_generation": generation, "conditions": tuple(conditions)})


def differs_only_in_progress(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> bool:
    """Return True if only these differ: messages of conditions, active time, Jobs' UIDs, pods, nodes and images.

    A restarted operator derives them from Jobs and pods again, so the write can wait.
    """
    if len(before.attempts) != len(after.attempts) or len(before.conditions) != len(after.conditions):
        return False
    for earlier, later in zip(before.attempts, after.attempts, strict=True):
        if earlier is not later and _without_progress(earlier) != _without_progress(later):
            return False
    for old, new in zip(before.conditions, after.conditions, strict=True):
        if old.model_copy(update={"message": new.message}) != new:
            return False
    # The attempts and conditions are compared above; the active time may differ.
    without_compared = {"attempts": (), "conditions": (), "active_start_time": None, "active_seconds": 0}
    return before.model_copy(update=without_compared) == after.model_copy(update=without_compared)


def _without_progress(attempt: Attempt) -> Attempt:
    """Return the attempt without its Job's UID, pod, node and image, which are set while it runs."""
    return attempt.model_copy(update={"job_uid": None, "pod": None, "node": None, "image": None})


def shortened_status(status: BenchmarkRunStatus) -> BenchmarkRunStatus:
    """Return a smaller status, for an API server that refuses this one.

    It has no comparisons and no headline, and its messages are short.
    """
    attempts = [
        attempt.model_copy(update={"message": _truncate(attempt.message, SHORT_MESSAGE)}) for attempt in status.attempts
    ]
    conditions = [
        condition.model_copy(update={"message": _truncate(condition.message, SHORT_MESSAGE)})
        for condition in status.conditions
    ]
    return status.model_copy(
        update={
            "attempts": tuple(attempts),
            "conditions": tuple(conditions),
            "comparisons": (),
            "comparisons_omitted": status.comparisons_omitted + len(status.comparisons),
            "headline": "",
        }
    )


def refused_status(message: str, status: BenchmarkRunStatus, now: datetime, generation: int) -> BenchmarkRunStatus:
    """Return the final status of a run whose spec is refused."""
    if status.attempts or status.measured_cases:
        remedy = "stored results are kept; correct the spec and apply it under another name"
    else:
        remedy = "nothing was measured; correct the spec and apply it again"
    states: dict[ConditionType, ConditionState] = {
        "Accepted": ConditionState("False", ConditionReason.INVALID_SPEC, message),
        "Finished": ConditionState("True", ConditionReason.INVALID_SPEC, remedy),
        "Succeeded": ConditionState("False", ConditionReason.INVALID_SPEC, message),
    }
    return status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": _conditions(states, status, now, generation),
            "phase": ConditionReason.INVALID_SPEC,
            "headline": _truncate(message, MAXIMUM_HEADLINE),
            "completion_time": status.completion_time or timestamp(now),
            "active_start_time": None,
        }
    )


def progress_status(plan: Plan, status: BenchmarkRunStatus, progress: RunProgress) -> BenchmarkRunStatus:
    """Return the status of an accepted run, which may have finished."""
    generation = plan.metadata.generation
    done_cases = {attempt.case for attempt in progress.attempts if attempt.finished}.union(progress.measured_cases)
    in_flight = [attempt for attempt in progress.attempts if attempt.job and attempt.case not in done_cases]
    is_done = len(done_cases) == len(plan.names) or (progress.stop is not None and not in_flight)
    if is_done:
        succeeded = _final_state(plan, progress)
        finished = ConditionState("True", succeeded.reason, succeeded.message)
    else:
        succeeded = ConditionState("Unknown", ConditionReason.UNFINISHED, "not every case has a result yet")
        finished = _unfinished_state(plan, progress, done_cases)
    accepted_message = f"{figures.count(len(plan.names), 'case')} on profile {plan.profile.name}"
    states: dict[ConditionType, ConditionState] = {
        "Accepted": ConditionState("True", ConditionReason.ACCEPTED, accepted_message),
        "Finished": finished,
        "Succeeded": succeeded,
    }
    results = _results_in_order(plan, progress)
    # Reuse earlier rows: building all of them again would be more than half of the work of a step of a large sweep.
    known_rows = {(row.result, row.variant): row for row in status.comparisons}
    rows = itertools.chain.from_iterable(_rows(result, known_rows) for result in results)
    comparison_count = sum(len(result.comparisons) for result in results)
    first_start = min((attempt.start_time for attempt in progress.attempts), default=None)
    return status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": _conditions(states, status, progress.now, generation),
            "phase": finished.reason,
            "cases": CaseCounts(
                total=len(plan.names),
                active=len(in_flight),
                measured=len(progress.results),
                failed=len(done_cases - set(progress.results)),  # also cases whose result was deleted
            ),
            "headline": _headline(plan, progress),
            "runner": plan.runner,
            "workload_source": ", ".join(_sources(plan, progress)),
            "start_time": status.start_time or first_start,
            "completion_time": timestamp(progress.now) if is_done else None,
            "measured_cases": progress.measured_cases,
            "attempts": progress.attempts,
            "comparisons": tuple(itertools.islice(rows, MAXIMUM_COMPARISONS)),
            "comparisons_omitted": max(0, comparison_count - MAXIMUM_COMPARISONS),
        }
    )


def _results_in_order(plan: Plan, progress: RunProgress) -> list[Summary]:
    """Return the results that exist, in the plan's order of cases."""
    return [progress.results[name] for name in plan.names if name in progress.results]


def _sources(plan: Plan, progress: RunProgress) -> Iterable[str]:
    """Return the digests of the workload's file from the results, each once; several if the file has changed."""
    results = _results_in_order(plan, progress)
    return dict.fromkeys(result.source for result in results if result.source)


def _unfinished_state(plan: Plan, progress: RunProgress, done_cases: set[str]) -> ConditionState:
    """Return the Finished condition of an unfinished run."""
    count = f"{len(done_cases)} of {len(plan.names)} cases done"
    if plan.policy.suspend:
        return ConditionState("False", ConditionReason.SUSPENDED, f"{count}; runPolicy.suspend: false resumes it")
    # One full stop at the end, with or without a reason.
    message = f"{count}. {progress.pending_reason}".rstrip(". ") + "."
    return ConditionState("False", ConditionReason.RUNNING if progress.is_busy else ConditionReason.QUEUED, message)


def _final_state(plan: Plan, progress: RunProgress) -> ConditionState:
    """Return the Succeeded condition of a finished run; if it is False, with the most important reason."""
    results = _results_in_order(plan, progress)
    # A reason to stop does not matter if the last case had a result before it.
    if progress.stop and len(results) < len(plan.names):
        return ConditionState("False", progress.stop.reason, progress.stop.message)
    sources = list(_sources(plan, progress))
    if len(sources) > 1:
        message = f"the workload's file had the digests {', '.join(sources)}"
        return ConditionState(
            "False", ConditionReason.WORKLOAD_CHANGED, ConditionReason.WORKLOAD_CHANGED.explain(message)
        )
    for reason, sentences in _shortcomings(progress, results):
        if sentences:
            return ConditionState("False", reason, _first_few(sentences))
    expectations = ", and every expectation is met" if plan.run.spec.expectations else ""
    return ConditionState("True", ConditionReason.SUCCEEDED, f"every case has a valid result{expectations}")


def _shortcomings(progress: RunProgress, results: list[Summary]) -> Iterable[tuple[ConditionReason, list[str]]]:
    """Yield each possible reason why a run has not succeeded, the most important first, with sentences about cases.

    A reason that does not apply has no sentences.
    """
    failed = [attempt for attempt in progress.attempts if attempt.finished]
    yield ConditionReason.CASE_FAILED, [f"{attempt.case}: {attempt.reason}: {attempt.message}" for attempt in failed]
    deleted = [case for case in progress.measured_cases if case not in progress.results]
    missing = ConditionReason.RESULT_MISSING
    yield missing, [missing.explain(f"{case}: its result is gone") for case in deleted]
    variant_failures = []
    for result in results:
        for variant in result.variants:
            if variant.failure:
                detail = f"{result.case}: {variant.name} {variant.failure}; BenchmarkResult {result.name} says why"
                variant_failures.append(variant.failure.explain(detail))
    yield ConditionReason.VARIANT_FAILED, variant_failures
    yield ConditionReason.INCOMPLETE, [_explain_incomplete(result) for result in results if not result.complete]
    invalid = [result for result in results if not result.valid and not result.only_noisy]
    yield (
        ConditionReason.INVALID_MEASUREMENT,
        [f"{result.case}: {_why_invalid(result)}; BenchmarkResult {result.name} says more" for result in invalid],
    )
    yield ConditionReason.NOISY, [f"{result.case}: {NOISY}" for result in results if result.only_noisy]
    yield (
        ConditionReason.EXPECTATION_NOT_MET,
        [f"{result.case}: {sentence}" for result in results for sentence in result.not_met],
    )


def _explain_incomplete(result: Summary) -> str:
    """Return a sentence with the reason why a result is incomplete, and where to find more."""
    cause = result.shortcoming.rstrip(". ")
    measured = f"measured in part: {cause}" if cause else "measured in part"
    return f"{result.case}: {measured}; see BenchmarkResult {result.name} and its Job's log"


def _why_invalid(result: Summary) -> str:
    """Return why a result has no valid verdict: failed checks, or too few undisturbed rounds."""
    if result.failed_checks:
        reason = f"{', '.join(dict.fromkeys(result.failed_checks))} failed"
    elif result.rounds:
        reason = f"{figures.count(result.rounds, 'round')} counted, too few for a verdict"
    else:
        reason = "no round counted, so nothing has a time"
    if not result.quarantined:
        return reason
    return f"{reason}; {figures.count(result.quarantined, 'round')} disturbed by other load, and discarded"


def _rows(result: Summary, known_rows: Mapping[tuple[str, str], ComparisonStatus]) -> Iterable[ComparisonStatus]:
    """Yield a row of `status.comparisons` for each comparison of a result; reuse rows from `known_rows`.

    The keys of `known_rows` are the names of a result and of a variant.
    """
    for comparison in result.comparisons:
        known_row = known_rows.get((result.name, comparison.variant))
        if known_row:
            yield known_row
            continue
        yield ComparisonStatus(
            case=result.case,
            variant=comparison.variant,
            verdict=result.outcome(comparison),
            speedup=None if comparison.speedup is None else figures.speedup(float(comparison.speedup)),
            interval=_interval(comparison),
            rounds=comparison.rounds,
            result=result.name,
        )


def _interval(comparison: Comparison) -> str | None:
    """Return the comparison's confidence interval as text; None if it has none."""
    if comparison.lower is None or comparison.upper is None:
        return None
    return figures.interval(float(comparison.lower), float(comparison.upper))


def _headline(plan: Plan, progress: RunProgress) -> str:
    """Summarize the results of a run in one line: each variant's outcomes and speedups, then the observations."""
    results = _results_in_order(plan, progress)
    comparisons_by_variant: dict[str, list[tuple[str, Comparison]]] = {}
    observation_counts: Counter[str] = Counter()
    for result in results:
        observation_counts.update(result.observations)
        for comparison in rank_comparisons(result.comparisons):
            outcome = result.outcome(comparison)
            outcome_text = "no verdict" if outcome == "none" else outcome
            comparisons_by_variant.setdefault(comparison.variant, []).append((outcome_text, comparison))
    summaries = [f"{name} {_summarize_comparisons(pairs)}" for name, pairs in comparisons_by_variant.items()]
    for observation, count in observation_counts.items():
        if len(results) > 1:
            summaries.append(f"{observation} in {count} of {len(results)} cases")
        else:
            summaries.append(observation)
    return _truncate("; ".join(summaries), MAXIMUM_HEADLINE)


def _summarize_comparisons(comparisons: list[tuple[str, Comparison]]) -> str:
    """Summarize a variant's comparisons in all cases: how often each outcome occurs, and the range of speedups.

    `comparisons` has the outcome of each comparison, and the comparison.
    """
    if len(comparisons) == 1:
        [(outcome, comparison)] = comparisons
        interval = _interval(comparison)
        if comparison.speedup and interval:
            return f"{outcome} {figures.speedup(float(comparison.speedup))} ({interval})"
        return outcome
    outcome_counts = Counter(outcome for outcome, _ in comparisons)
    counts = ", ".join(f"{outcome} in {count}" for outcome, count in outcome_counts.items())
    summary = f"{counts} of {len(comparisons)}"
    # A speedup without an interval is not shown.
    speedups = [
        float(comparison.speedup) for _, comparison in comparisons if comparison.speedup and _interval(comparison)
    ]
    if not speedups:
        return summary
    lowest, highest = figures.speedup(min(speedups)), figures.speedup(max(speedups))
    return f"{summary}, {lowest}" if lowest == highest else f"{summary}, {lowest} to {highest}"


def _conditions(
    states: Mapping[ConditionType, ConditionState], status: BenchmarkRunStatus, now: datetime, generation: int
) -> tuple[Condition, ...]:
    """Return the operator's conditions, then those that other programs have added to the status.

    `states` has the states of the conditions that every status has. Those for kstatus are derived from them.
    """
    earlier_conditions = {condition.type: condition for condition in status.conditions}
    conditions = []
    for condition_type, state in itertools.chain(states.items(), _kstatus_states(states)):
        earlier = earlier_conditions.get(condition_type)
        transition_time = timestamp(now)
        if earlier is not None and earlier.status == state.status:
            transition_time = earlier.last_transition_time  # only a new status is a transition
        condition = Condition(
            type=condition_type,
            status=state.status,
            reason=state.reason,
            message=_truncate(state.message, MAXIMUM_MESSAGE),
            last_transition_time=transition_time,
            observed_generation=generation,
        )
        conditions.append(condition)
    conditions += [condition for condition in status.conditions if condition.type not in OWN_CONDITIONS]
    return tuple(conditions[:MAXIMUM_CONDITIONS])


def _kstatus_states(states: Mapping[ConditionType, ConditionState]) -> Iterable[tuple[ConditionType, ConditionState]]:
    """Yield the condition that has kstatus, and so Flux, wait for the run (Reconciling) or give up (Stalled).

    A run that succeeded or is suspended has neither: kstatus then reports that the run is as its spec wants it.
    """
    finished, succeeded = states["Finished"], states["Succeeded"]
    if finished.status == "False" and finished.reason is not ConditionReason.SUSPENDED:
        yield "Reconciling", ConditionState("True", finished.reason, finished.message)
    elif finished.status == "True" and succeeded.status == "False":
        yield "Stalled", ConditionState("True", succeeded.reason, succeeded.message)


def _first_few(sentences: list[str]) -> str:
    """Join the first sentences, and add the number of the others."""
    first = "; ".join(sentences[:NAMED_CASES])
    remaining_count = len(sentences) - NAMED_CASES
    return f"{first}; and {remaining_count} more" if remaining_count > 0 else first


def _truncate(text: str, maximum_length: int) -> str:
    """Return the text on one line, cut to at most `maximum_length` characters."""
    return shorten(on_one_line(text), maximum_length)
