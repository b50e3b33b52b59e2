"""Turn the log of a pod that has ended into a verified result, or into a failure, without requests.

The first of these that exists is the result:

1. the result whose digest the headline names;
2. if the whole container was killed, the last checkpoint with the failure of the running variant;
3. if the log is lost, a result with the content of the headline;
4. if no other attempt follows, a result that was interrupted, or the last checkpoint.

All but the first are marked as incomplete, and their notes give the reason.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta

from pydantic import ValidationError

from accelbench import figures
from accelbench.api import labels
from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason, RetryLimit, StopReason
from accelbench.api.result import Comparison, Result, SpeedupEstimate, VariantResult
from accelbench.delivery.killed import NoRunningVariantError, result_of_killed
from accelbench.delivery.log import Headline, LogDocuments
from accelbench_operator.runs.failure import (
    AttemptFailure,
    case_changed,
    pod_interrupted,
    removal_of,
    without_result,
)
from accelbench_operator.runs.observed import ObservedPod, explain_still_running
from accelbench_operator.runs.same_case import find_case_changes

NAMED_PROBLEMS = 3
"""Maximum number of problems of a log that a message names."""
OUT_OF_MEMORY = "OOMKilled"
DEADLINE_EXCEEDED = "DeadlineExceeded"


def read_outcome(
    case: Case, pod: ObservedPod, log: LogDocuments | None, *, retries: Collection[RetryLimit], now: str
) -> Result | AttemptFailure:
    """Return the result of an attempt at `case`, or its failure.

    A result gets a note if other containers of the pod still run, or have failed.

    Args:
        case: The case that was attempted.
        pod: The pod of the attempt, whose runner has ended.
        log: The documents in its log; None if the log is gone.
        retries: Retry limits that are not reached yet. If no attempt can follow, an incomplete result is accepted.
        now: The current time in RFC 3339, for a result that the operator makes because the runner's own is lost.
    """
    outcome = _read_outcome(case, pod, log, retries, now)
    others_may_have_disturbed = bool(pod.still_running or pod.failed_containers)
    if isinstance(outcome, AttemptFailure) or not others_may_have_disturbed:
        return outcome
    # The last note of an incomplete result has to stay the reason why it is incomplete, so this note goes first.
    return outcome.model_copy(update={"notes": (_note_on_other_containers(pod), *outcome.notes)})


def _note_on_other_containers(pod: ObservedPod) -> str:
    """Return a note on the other containers of the runner's pod, which may have disturbed the measurement."""
    states = [f"container {name_and_end}" for name_and_end in pod.failed_containers]
    if pod.still_running:
        states.append(f"{explain_still_running(pod)} in the pod although the runner has ended")
    return (
        f"{'; '.join(states)}: containers that are added to a pod share the processors that are measured; add none to "
        f"pods with the label {labels.MANAGED_BY}={labels.MANAGER}"
    )


def _read_outcome(
    case: Case, pod: ObservedPod, log: LogDocuments | None, retries: Collection[RetryLimit], now: str
) -> Result | AttemptFailure:
    """Return the first of these that exists: the result, a checkpoint of a killed runner, a result from the headline.

    Otherwise return a failure. If no other attempt can follow, an interrupted result or the last checkpoint is
    returned instead of the failure. A result of another case than `case` is a failure too. `log` is None if there is
    none, or none that is surely the pod's.
    """
    documents = log or LogDocuments()
    headline = read_headline(case, pod.message)
    log_state = _describe_log(log)
    result = _delivered_result(case, headline, documents)
    changes = find_case_changes(case, result.case) if result else ()
    if changes:
        return case_changed("the result in the pod's log", changes)
    # The failure counts unless a result is returned below; its reason decides whether another attempt follows.
    # If the runner has used all its time, its incomplete result is accepted: another attempt would get no more time.
    was_interrupted = result is not None and not result.complete and not _ran_overtime(pod, case)
    if was_interrupted:
        failure = pod_interrupted(pod)
    else:
        failure = without_result(pod, headline.message if headline else "", log_state)
    # Each reason counts towards one retry limit, or towards none.
    is_last_attempt = failure.reason.retry_limit not in retries
    if result is not None and (is_last_attempt or not was_interrupted):
        return _with_notes(result, *documents.problems)
    partial_result = result or _if_of_this_case(case, documents.latest("checkpoint"))
    if result is None and headline is not None:
        result_of_kill = _result_of_kill(case, pod, headline, partial_result, now)
        if result_of_kill:
            return _with_notes(result_of_kill, *documents.problems)
        # After a deletion or an eviction, another attempt gives a better result than the headline can.
        was_removed = pod.deletion_time or removal_of(pod)
        if headline.state == "finished" and (is_last_attempt or not was_removed):
            return _from_headline(case, headline, log_state, now)
    if partial_result is not None and is_last_attempt:
        partial = partial_result.model_copy(update={"complete": False, "stopped": StopReason.INTERRUPTED})
        return _with_notes(partial, f"only the rounds before the end of the attempt: {failure}", *documents.problems)
    return failure


def read_headline(case: Case, message: str) -> Headline | None:
    """Return the runner's headline from its pod's termination message; None if it is of another attempt or invalid."""
    try:
        headline = Headline.model_validate_json(message)
    except ValidationError:
        return None
    # A runner that cannot read its case knows neither the name of the case nor the attempt.
    is_refusal = headline.state == "failed" and headline.case == "" and headline.attempt == 0
    is_of_attempt = headline.case == case.name and headline.attempt == case.origin.attempt
    return headline if is_refusal or is_of_attempt else None


def _delivered_result(case: Case, headline: Headline | None, documents: LogDocuments) -> Result | None:
    """Return the result of this attempt in the log; None if there is none.

    If there is a headline, the result must have the digest that the headline names.
    """
    if headline is None:
        return _if_of_this_attempt(case, documents.latest("result"))
    if not headline.digest:
        return None  # the runner has printed no result
    return _if_of_this_attempt(case, documents.latest("result", headline.digest))


def _if_of_this_attempt(case: Case, result: Result | None) -> Result | None:
    """Return the result if it names this attempt, else None."""
    # A measured program can print any result, also that of another attempt.
    if result is None or _attempt_identity(result.case) != _attempt_identity(case):
        return None
    return result


def _if_of_this_case(case: Case, checkpoint: Result | None) -> Result | None:
    """Return the checkpoint if it names this attempt and has the same case, else None."""
    own_checkpoint = _if_of_this_attempt(case, checkpoint)
    if own_checkpoint is None or find_case_changes(case, own_checkpoint.case):
        return None
    return own_checkpoint


def _attempt_identity(case: Case) -> tuple[str, str, int]:
    """Return the name of the case, the UID of its run and the number of the attempt."""
    return case.name, case.origin.uid, case.origin.attempt


def _result_of_kill(
    case: Case, pod: ObservedPod, headline: Headline, checkpoint: Result | None, now: str
) -> Result | None:
    """Return the last checkpoint with the failure of the variant that was killed; None if no variant was killed.

    Without a checkpoint, the returned result has no times. Only lack of memory and a hang are blamed on the variant.
    """
    if pod.reason == OUT_OF_MEMORY:
        reason = FailureReason.OUT_OF_MEMORY
        message = "the container was killed at its memory limit: raise it, or use a smaller case"
    elif _ran_overtime(pod, case):
        reason = FailureReason.TIMED_OUT
        message = "the runner hung, and was ended long after the case's time limit"
    else:
        return None
    try:
        return result_of_killed(case, checkpoint, headline, reason=reason, message=message, now=now)
    except NoRunningVariantError:
        return None


def _ran_overtime(pod: ObservedPod, case: Case) -> bool:
    """Return True if the runner used all its time, so that it ended itself or the kubelet ended its pod."""
    if pod.started_at is None or pod.ended_at is None:
        return False
    # Both times are from the clock of the same node.
    limit = timedelta(seconds=case.measurement.runner_limit_seconds)
    return pod.pod_reason == DEADLINE_EXCEEDED or pod.ended_at - pod.started_at >= limit


def _from_headline(case: Case, headline: Headline, log_state: str, now: str) -> Result:
    """Return an incomplete result from the runner's termination message alone, because the log is lost."""
    estimates = _headline_comparisons(case, headline)
    return Result(
        case=case,
        complete=False,
        unit="step",  # the headline does not have the name of the unit
        started=now,
        finished=now,
        rounds=headline.round,
        variants=tuple(VariantResult(name=variant.name, use=variant.use) for variant in case.variants),
        comparisons=tuple(_quoted_comparison(case, headline.round, estimate) for estimate in estimates),
        notes=(f"only the runner's headline is left, without measurements and checks. {log_state}",),
    )


def _headline_comparisons(case: Case, headline: Headline) -> Iterable[SpeedupEstimate]:
    """Return the headline's estimates, at most one for each variant of the case, in the order of the variants."""
    by_variant = {estimate.variant: estimate for estimate in headline.comparisons}
    return (by_variant[variant.name] for variant in case.variants if variant.name in by_variant)


def _quoted_comparison(case: Case, rounds: int, estimate: SpeedupEstimate) -> Comparison:
    """Return a comparison without a verdict; its sentence repeats the speedup from the runner's termination message."""
    outcome: str = estimate.verdict or "no verdict"
    if estimate.speedup and estimate.lower and estimate.upper:
        interval = figures.interval(float(estimate.lower), float(estimate.upper))
        outcome += f", {figures.speedup(float(estimate.speedup))} ({interval})"
    return Comparison(
        variant=estimate.variant,
        baseline=case.baseline,
        rounds=rounds,
        confidence=case.measurement.confidence,
        sentence=f"The runner reported {outcome}; the evidence was lost with its log, so this is no verdict.",
    )


def _describe_log(log: LogDocuments | None) -> str:
    """Return why the log has no result of the attempt, and a remedy for a damaged log."""
    if log is None:
        return "The log is gone"
    if log.problems:
        named_problems = "; ".join(log.problems[:NAMED_PROBLEMS])
        return f"The log is damaged: {named_problems}. {_remedy(log.problems)}".rstrip()
    return "The log holds no result of this attempt"


def _remedy(problems: Sequence[str]) -> str:
    """Return a remedy for these problems of a log; empty if there is none."""
    # These words are in the problems that `LogReader` reports.
    if any("truncated" in problem for problem in problems):
        return "Have the node's kubelet keep larger logs (containerLogMaxSize), or print less"
    if any("altered" in problem for problem in problems):
        return "Check what else the variants print"
    return ""


def _with_notes(result: Result, *notes: str) -> Result:
    """Return the result with further notes at the end."""
    return result.model_copy(update={"notes": (*result.notes, *notes)}) if notes else result
