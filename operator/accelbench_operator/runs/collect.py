"""Turn the log of an ended pod into a verified result, or into the reason why there is none; pure.

In this order: the result whose digest the headline names; after a kill of the whole container, the last checkpoint with
the failure of the running variant; without a log, the headline; and if no further attempt follows, a result that was
cut short, or the last checkpoint. All but the first are marked as not complete and explain it in their notes.
"""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.result import Comparison, Result, SpeedupEstimate, VariantResult
from accelbench.delivery.killed import NoRunningVariantError, result_of_killed
from accelbench.delivery.log import DocumentKind, Headline, LogDocuments, read_log
from accelbench_operator.runs.failure import AttemptFailure, interrupted, without_result
from accelbench_operator.runs.observed import ObservedPod

READ_KINDS: frozenset[DocumentKind] = frozenset({"checkpoint", "result"})
"""Documents that the operator reads from a log; those of launches are for people."""
OUT_OF_MEMORY = "OOMKilled"
DEADLINE_EXCEEDED = "DeadlineExceeded"


def read_outcome(case: Case, pod: ObservedPod, log: str | None, *, last: bool, now: str) -> Result | AttemptFailure:
    """Return the result that the attempt at `case` brought, or its failure.

    Args:
        case: The case with the attempt's number in its origin.
        pod: The pod of the attempt, which has ended.
        log: Its log; None if it cannot be read.
        last: True if no other attempt follows, so that an incomplete result is better than none.
        now: Timestamp for a result that is built here, because the runner did not finish one.
    """
    delivered = read_log((log or "").splitlines(), READ_KINDS)
    headline = read_headline(case, pod.message)
    evidence = _evidence(log, delivered)
    result = _delivered_result(case, headline, delivered)
    cut_short = result is not None and not result.complete and pod.pod_reason != DEADLINE_EXCEEDED
    failure = interrupted(pod) if cut_short else without_result(pod, headline.message if headline else "", evidence)
    if result is not None and (last or not cut_short):
        return _with_notes(result, *delivered.problems)
    if result is None and headline is not None:
        checkpoint = _of_this_attempt(case, delivered.latest("checkpoint"))
        if killed := _result_of_kill(case, pod, headline, checkpoint, now):
            return _with_notes(killed, *delivered.problems)
        # If the pod was deleted or evicted, the next attempt brings more than this headline.
        if headline.state == "finished" and (last or not (pod.disruption or pod.deleted)):
            return _from_headline(case, headline, evidence, now)
    checkpoint = result or _of_this_attempt(case, delivered.latest("checkpoint"))
    if checkpoint is not None and (last or not failure.reason.retried):
        partial = checkpoint.model_copy(update={"complete": False, "stopped": StopReason.INTERRUPTED})
        return _with_notes(partial, f"only the rounds before the end of the attempt: {failure}", *delivered.problems)
    return failure


def read_headline(case: Case, message: str) -> Headline | None:
    """Return the headline in a termination message; None for anything else, or for another case or attempt.

    A runner that refuses its case sends a headline without its name: it may not have been able to read it.
    """
    try:
        headline = Headline.model_validate_json(message)
    except ValidationError:
        return None
    is_refusal = (headline.case, headline.attempt, headline.state) == ("", 0, "failed")
    return headline if is_refusal or (headline.case, headline.attempt) == (case.name, case.origin.attempt) else None


def _delivered_result(case: Case, headline: Headline | None, delivered: LogDocuments) -> Result | None:
    """Return the delivered result with the headline's digest; without a headline, one that matches its own digest."""
    if headline is None:
        return _of_this_attempt(case, delivered.latest("result"))
    return _of_this_attempt(case, delivered.latest("result", headline.digest)) if headline.digest else None


def _of_this_attempt(case: Case, result: Result | None) -> Result | None:
    """Return the result if it is of this attempt: a program under test can print any result of any series.

    Only the identity of the case is compared: an operator that was upgraded may write the case with new defaults.
    """
    return result if result is not None and _identity(result.case) == _identity(case) else None


def _identity(case: Case) -> object:
    """Return the parts of a case that do not depend on the defaults of a release."""
    variants = [(variant.name, variant.use) for variant in case.variants]
    device = case.accelerator
    return case.name, case.origin, case.workload, variants, device.profile, device.price_per_hour


def _result_of_kill(
    case: Case, pod: ObservedPod, headline: Headline, checkpoint: Result | None, now: str
) -> Result | None:
    """Return the last checkpoint with the failure of the running variant.

    None if the container was not killed at its memory limit or deadline, or if no variant was running.
    """
    if pod.reason == OUT_OF_MEMORY:
        reason, message = (
            FailureReason.OUT_OF_MEMORY,
            "the container was killed at its memory limit: raise it, or use a smaller case",
        )
    elif pod.pod_reason == DEADLINE_EXCEEDED:
        reason, message = FailureReason.TIMED_OUT, "the pod was ended at its deadline, long after the case's time limit"
    else:
        return None
    try:
        return result_of_killed(case, checkpoint, headline, reason=reason, message=message, now=now)
    except NoRunningVariantError:
        return None


def _from_headline(case: Case, headline: Headline, evidence: str, now: str) -> Result:
    """Return what is left without a log: the numbers of the runner's headline, without verdicts."""
    return Result(
        case=case,
        complete=False,
        unit="step",
        started=now,
        finished=now,
        rounds=headline.round,
        variants=tuple(VariantResult(name=variant.name, use=variant.use) for variant in case.variants),
        comparisons=tuple(
            _reported_comparison(case, headline.round, row) for row in _headline_comparisons(case, headline)
        ),
        notes=(f"only the runner's headline is left, without measurements and checks. {evidence}",),
    )


def _headline_comparisons(case: Case, headline: Headline) -> Iterable[SpeedupEstimate]:
    """Return the headline's comparisons of variants that the case has, at most one for each."""
    by_variant = {row.variant: row for row in headline.comparisons}
    return (by_variant[variant.name] for variant in case.variants if variant.name in by_variant)


def _reported_comparison(case: Case, rounds: int, estimate: SpeedupEstimate) -> Comparison:
    """Return a comparison without verdict and numbers, whose sentence quotes the headline."""
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


def _evidence(log: str | None, delivered: LogDocuments) -> str:
    """Return a sentence about the state of the log, and what to do about it."""
    if log is None:
        return "The log is gone"
    if delivered.problems:
        return f"The log is damaged: {'; '.join(delivered.problems[:3])}. {_remedy(delivered.problems)}".rstrip()
    return "The log holds no result of this attempt"


def _remedy(problems: Sequence[str]) -> str:
    """Return what to do about a log that lacks lines, or that another process wrote into."""
    if any("truncated" in problem for problem in problems):
        return "Have the node's kubelet keep larger logs (containerLogMaxSize), or print less"
    if any("altered" in problem for problem in problems):
        return "Check what else the variants print"
    return ""


def _with_notes(result: Result, *notes: str) -> Result:
    return result.model_copy(update={"notes": (*result.notes, *notes)}) if notes else result
