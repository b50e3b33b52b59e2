"""Derive the run's status from attempts and results alone, so that a restarted operator derives the same.

Nothing in it depends on when it is derived, so an unchanged status is not written again. Rows of results are kept, as
results never change.
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
from accelbench.document import on_one_line, timestamp
from accelbench_operator.runs.accept import Plan
from accelbench_operator.runs.summary import Summary

MAXIMUM_COMPARISONS = 64
MAXIMUM_HEADLINE = 160
MAXIMUM_MESSAGE = 2048
SHORT_MESSAGE = 256
NOISY = "measured next to other load, as acceptNoise allows: an interval, but no certified verdict"
NAMED_CASES = 3
"""Maximum number of cases that a message names before it counts the others."""

Truth = Literal["True", "False", "Unknown"]
ConditionType = Literal["Accepted", "Finished", "Succeeded"]
OWN_CONDITIONS: tuple[str, ...] = get_args(ConditionType)


@dataclass(frozen=True)
class Stop:
    """Describe why no further case is started."""

    reason: ConditionReason
    message: str
    discards: AttemptReason | None = None
    """Why cases in flight are discarded as well; None if they continue."""


@dataclass(frozen=True)
class RunProgress:
    """Hold what the status is derived from."""

    attempts: tuple[Attempt, ...]
    """Attempts at cases without a result, in the plan's order."""
    measured: tuple[str, ...]
    """Cases whose result was stored, in the plan's order; it may have been deleted since."""
    results: Mapping[str, Summary]
    now: datetime
    stop: Stop | None
    busy: bool
    """A case runs, or has ended and is being collected."""
    pending: str
    """Why the first case that waits does so; empty if none does."""


@dataclass(frozen=True)
class ConditionState:
    """Hold a condition without its times."""

    status: Truth
    reason: ConditionReason
    message: str


def finished_at(status: BenchmarkRunStatus) -> datetime | None:
    """Return when the run finished, which is final; None if it has not."""
    for condition in status.conditions:
        if condition.type == "Finished" and condition.status == "True":
            return datetime.fromisoformat(status.completion_time or condition.last_transition_time)
    return None


def with_generation(status: BenchmarkRunStatus, generation: int) -> BenchmarkRunStatus:
    """Return a finished run's status for a later generation: `kubectl wait` ignores conditions of an older one."""
    conditions = tuple(
        condition.model_copy(update={"observed_generation": generation})
        if condition.type in OWN_CONDITIONS
        else condition
        for condition in status.conditions
    )
    return status.model_copy(update={"observed_generation": generation, "conditions": conditions})


def differs_only_in_progress(before: BenchmarkRunStatus, after: BenchmarkRunStatus) -> bool:
    """Return True if the statuses differ only in why cases wait, where they run, and how long they ran.

    An operator that reads `before` derives this again from Jobs and pods, which stay until more is written.
    """
    if len(before.attempts) != len(after.attempts) or len(before.conditions) != len(after.conditions):
        return False
    attempts = zip(before.attempts, after.attempts, strict=True)
    if any(
        earlier is not later and _without_progress(earlier) != _without_progress(later) for earlier, later in attempts
    ):
        return False
    conditions = zip(before.conditions, after.conditions, strict=True)
    if any(earlier.model_copy(update={"message": later.message}) != later for earlier, later in conditions):
        return False
    progress = {"attempts": (), "conditions": (), "active_start_time": None, "active_seconds": 0}
    return before.model_copy(update=progress) == after.model_copy(update=progress)


def _without_progress(attempt: Attempt) -> Attempt:
    return attempt.model_copy(update={"job_uid": None, "pod": None, "node": None, "image": None})


def shortened(status: BenchmarkRunStatus) -> BenchmarkRunStatus:
    """Return a smaller status: without comparisons and headline, and with messages cut to `SHORT_MESSAGE`."""
    attempts = [part.model_copy(update={"message": _truncate(part.message, SHORT_MESSAGE)}) for part in status.attempts]
    conditions = [
        part.model_copy(update={"message": _truncate(part.message, SHORT_MESSAGE)}) for part in status.conditions
    ]
    shorter = {"attempts": tuple(attempts), "conditions": tuple(conditions), "comparisons": (), "headline": ""}
    omitted = status.comparisons_omitted + len(status.comparisons)
    return status.model_copy(update={**shorter, "comparisons_omitted": omitted})


def refused_status(message: str, status: BenchmarkRunStatus, now: datetime, generation: int) -> BenchmarkRunStatus:
    """Return the status of a refused run."""
    stored_results = "stored results are kept" if status.measured_cases else "nothing was measured"
    remedy = f"{stored_results}; correct the spec and apply it under another name"
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
    """Return the status of an accepted run."""
    generation = plan.metadata.generation
    done_cases = {attempt.case for attempt in progress.attempts if attempt.finished}.union(progress.measured)
    in_flight = [attempt for attempt in progress.attempts if attempt.job and attempt.case not in done_cases]
    is_done = len(done_cases) == len(plan.names) or (progress.stop is not None and not in_flight)
    succeeded = (
        _final_state(plan, progress)
        if is_done
        else ConditionState("Unknown", ConditionReason.UNFINISHED, "not every case has a result yet")
    )
    finished = (
        ConditionState("True", succeeded.reason, succeeded.message)
        if is_done
        else _unfinished_state(plan, progress, done_cases)
    )
    states: dict[ConditionType, ConditionState] = {
        "Accepted": ConditionState(
            "True", ConditionReason.ACCEPTED, f"{figures.count(len(plan.names), 'case')} on profile {plan.profile.name}"
        ),
        "Finished": finished,
        "Succeeded": succeeded,
    }
    results = [progress.results[name] for name in plan.names if name in progress.results]
    # Building all rows again would be more than half of the work of a step of a large sweep.
    known_rows = {(row.result, row.variant): row for row in status.comparisons}
    rows = itertools.chain.from_iterable(_rows(result, known_rows) for result in results)
    first = min((attempt.start_time for attempt in progress.attempts), default=None)
    return status.model_copy(
        update={
            "observed_generation": generation,
            "conditions": _conditions(states, status, progress.now, generation),
            "phase": finished.reason,
            "cases": CaseCounts(
                total=len(plan.names),
                active=len(in_flight),
                measured=len(progress.results),
                failed=len(done_cases - set(progress.results)),
            ),
            "headline": _headline(plan, progress),
            "runner": plan.runner,
            "workload_source": ", ".join(_sources(plan, progress)),
            "start_time": status.start_time or first,
            "completion_time": timestamp(progress.now) if is_done else None,
            "measured_cases": progress.measured,
            "attempts": progress.attempts,
            "comparisons": tuple(itertools.islice(rows, MAXIMUM_COMPARISONS)),
            "comparisons_omitted": max(0, sum(len(result.comparisons) for result in results) - MAXIMUM_COMPARISONS),
        }
    )


def _sources(plan: Plan, progress: RunProgress) -> Iterable[str]:
    """Return the different digests of the workload's file, in the order of the cases."""
    results = [progress.results[name] for name in plan.names if name in progress.results]
    return dict.fromkeys(result.source for result in results if result.source)


def _unfinished_state(plan: Plan, progress: RunProgress, done_cases: set[str]) -> ConditionState:
    """Return the Finished condition of a run that has not finished."""
    count = f"{len(done_cases)} of {len(plan.names)} cases done"
    if plan.policy.suspend:
        return ConditionState("False", ConditionReason.SUSPENDED, f"{count}; runPolicy.suspend: false resumes it")
    message = f"{count}. {progress.pending}".rstrip(". ") + "."
    return ConditionState("False", ConditionReason.RUNNING if progress.busy else ConditionReason.QUEUED, message)


def _final_state(plan: Plan, progress: RunProgress) -> ConditionState:
    """Return the Succeeded condition of a finished run, with its most important reason.

    The order is: what stopped the run, a workload's file that changed, failed cases, defects of results.
    """
    results = [progress.results[name] for name in plan.names if name in progress.results]
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
    """Yield each reason for which a run does not succeed with a sentence a case, the most important reason first."""
    failed = [attempt for attempt in progress.attempts if attempt.finished]
    yield ConditionReason.CASE_FAILED, [f"{attempt.case}: {attempt.reason}: {attempt.message}" for attempt in failed]
    deleted = [case for case in progress.measured if case not in progress.results]
    missing = ConditionReason.RESULT_MISSING
    yield missing, [missing.explain(f"{case}: its result is gone") for case in deleted]
    yield (
        ConditionReason.VARIANT_FAILED,
        [
            variant.failure.explain(
                f"{result.case}: {variant.name} {variant.failure}; BenchmarkResult {result.name} says why"
            )
            for result in results
            for variant in result.variants
            if variant.failure
        ],
    )
    yield (
        ConditionReason.INCOMPLETE,
        [
            f"{result.case}: measured in part{f': {cause}' if (cause := result.shortcoming.rstrip('. ')) else ''}; "
            f"see BenchmarkResult {result.name} and its Job's log"
            for result in results
            if not result.complete
        ],
    )
    yield (
        ConditionReason.INVALID_MEASUREMENT,
        [
            f"{result.case}: {_why_invalid(result)}; BenchmarkResult {result.name} says more"
            for result in results
            if not result.valid and not result.only_noisy
        ],
    )
    yield ConditionReason.NOISY, [f"{result.case}: {NOISY}" for result in results if result.only_noisy]
    yield (
        ConditionReason.EXPECTATION_NOT_MET,
        [f"{result.case}: {sentence}" for result in results for sentence in result.not_met],
    )


def _why_invalid(result: Summary) -> str:
    """Return why a result is not valid, from its failed checks or else its rounds."""
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
    """Yield a row for each comparison; rows that are known are reused."""
    for comparison in result.comparisons:
        yield known_rows.get((result.name, comparison.variant)) or ComparisonStatus(
            case=result.case,
            variant=comparison.variant,
            verdict=result.outcome(comparison),
            speedup=None if comparison.speedup is None else figures.speedup(float(comparison.speedup)),
            interval=_interval(comparison),
            rounds=comparison.rounds,
            result=result.name,
        )


def _interval(comparison: Comparison) -> str | None:
    if comparison.lower is None or comparison.upper is None:
        return None
    return figures.interval(float(comparison.lower), float(comparison.upper))


def _headline(plan: Plan, progress: RunProgress) -> str:
    """Summarize one case by its comparisons, several by the verdicts and speedups of each variant.

    If nothing was timed, name the observations, and in how many cases they were made.
    """
    results = [progress.results[name] for name in plan.names if name in progress.results]
    by_variant: dict[str, list[tuple[str, Comparison]]] = {}
    for result in results:
        for comparison in rank_comparisons(result.comparisons):
            outcome = result.outcome(comparison)
            by_variant.setdefault(comparison.variant, []).append((_outcome_in_words(outcome), comparison))
    observed = Counter(text for result in results for text in result.observations)
    parts = [f"{name} {_summarize_comparisons(rows)}" for name, rows in by_variant.items()]
    parts += [
        f"{text} in {count} of {len(results)} cases" if len(results) > 1 else text for text, count in observed.items()
    ]
    return _truncate("; ".join(parts), MAXIMUM_HEADLINE)


def _outcome_in_words(outcome: str) -> str:
    return outcome if outcome != "none" else "no verdict"


def _summarize_comparisons(comparisons: list[tuple[str, Comparison]]) -> str:
    """Summarize a variant's comparisons in all cases, each with its outcome in words.

    One comparison gives its speedup and interval; several give the count of each outcome and the range of speedups.
    """
    verdicts = [outcome for outcome, _ in comparisons]
    if len(comparisons) == 1:
        [(outcome, comparison)] = comparisons
        interval = _interval(comparison)
        speedup = (
            f" {figures.speedup(float(comparison.speedup))} ({interval})" if comparison.speedup and interval else ""
        )
        return f"{outcome}{speedup}"
    counts = ", ".join(f"{verdict} in {verdicts.count(verdict)}" for verdict in dict.fromkeys(verdicts))
    speedups = [
        float(comparison.speedup) for _, comparison in comparisons if comparison.speedup and _interval(comparison)
    ]
    extremes = dict.fromkeys(figures.speedup(end) for end in (min(speedups), max(speedups))) if speedups else ()
    return f"{counts} of {len(comparisons)}{', ' if extremes else ''}{' to '.join(extremes)}"


def _conditions(
    states: Mapping[ConditionType, ConditionState], status: BenchmarkRunStatus, now: datetime, generation: int
) -> tuple[Condition, ...]:
    """Return the conditions with these states, then those of others; a transition time changes with its status."""
    earlier = {condition.type: condition for condition in status.conditions}
    own = (
        Condition(
            type=kind,
            status=state.status,
            reason=state.reason,
            message=_truncate(state.message, MAXIMUM_MESSAGE),
            last_transition_time=earlier[kind].last_transition_time
            if kind in earlier and earlier[kind].status == state.status
            else timestamp(now),
            observed_generation=generation,
        )
        for kind, state in states.items()
    )
    others = [condition for condition in status.conditions if condition.type not in states]
    return (*own, *others)[:MAXIMUM_CONDITIONS]


def _first_few(sentences: list[str]) -> str:
    """Join the first `NAMED_CASES` sentences, and count the others."""
    first = "; ".join(sentences[:NAMED_CASES])
    return first if len(sentences) <= NAMED_CASES else f"{first}; and {len(sentences) - NAMED_CASES} more"


def _truncate(text: str, length: int) -> str:
    """Return the text on one line, with at most `length` characters."""
    text = on_one_line(text)
    return text if len(text) <= length else f"{text[: length - 1]}…"
