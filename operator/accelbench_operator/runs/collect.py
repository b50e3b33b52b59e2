"""From an ended pod to a verified result, or to the reason why there is none: pure, given the pod's log.

In order: the result whose digest the headline names; after a kill of the whole container, the last checkpoint with the
failure of the variant that was running; for a log that was lost, the headline; and where no further attempt will be
made, a result that was cut short, or the last checkpoint. Anything less than the first says so in its notes and is not
complete.
"""

from collections.abc import Iterable, Sequence

from pydantic import ValidationError

from accelbench import figures
from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.result import Comparison, Result, SpeedupEstimate, VariantResult
from accelbench.delivery.killed import NoRunningVariantError, result_of_killed
from accelbench.delivery.log import Delivered, DocumentKind, Headline, read_log
from accelbench_operator.runs.failure import AttemptFailure, interrupted, without_result
from accelbench_operator.runs.observed import ObservedPod

OURS: frozenset[DocumentKind] = frozenset({"checkpoint", "result"})
"""What the operator wants of a log; launches are for those who read it by hand."""
OUT_OF_MEMORY = "OOMKilled"
DEADLINE_EXCEEDED = "DeadlineExceeded"


def outcome(case: Case, pod: ObservedPod, log: str | None, *, last: bool, now: str) -> Result | AttemptFailure:
    """What the attempt at `case` brought; `log` is None where it is lost, `last` where no other attempt will follow."""
    delivered = read_log((log or "").splitlines(), OURS)
    headline = read_headline(case, pod.message)
    evidence = _evidence(log, delivered)
    result = _result(case, headline, delivered)
    cut_short = result is not None and not result.complete and pod.pod_reason != DEADLINE_EXCEEDED
    loss = interrupted(pod) if cut_short else without_result(pod, headline.message if headline else "", evidence)
    if result is not None and (last or not cut_short):
        return _noted(result, *delivered.problems)
    if result is None and headline is not None:
        checkpoint = _own(case, delivered.latest("checkpoint"))
        if killed := _killed(case, pod, headline, checkpoint, now):
            return _noted(killed, *delivered.problems)
        # Of a pod that was told to go, the next attempt will tell more than what this one's headline does.
        if headline.state == "finished" and (last or not (pod.disruption or pod.deleted)):
            return _from_headline(case, headline, evidence, now)
    checkpoint = result or _own(case, delivered.latest("checkpoint"))
    if checkpoint is not None and (last or not loss.reason.retried):
        partial = checkpoint.model_copy(update={"complete": False, "stopped": StopReason.INTERRUPTED})
        return _noted(partial, f"only the rounds before the end of the attempt: {loss}", *delivered.problems)
    return loss


def read_headline(case: Case, message: str) -> Headline | None:
    """The headline in a termination message; None for anything else, and for that of another case or attempt.

    A runner that refuses its case says so without a name: it may not even have read one.
    """
    try:
        headline = Headline.model_validate_json(message)
    except ValidationError:
        return None
    refused = (headline.case, headline.attempt, headline.state) == ("", 0, "failed")
    return headline if refused or (headline.case, headline.attempt) == (case.name, case.origin.attempt) else None


def _result(case: Case, headline: Headline | None, delivered: Delivered) -> Result | None:
    """The delivered result: the one that the headline vouches for; without a headline, one whose own digest holds."""
    if headline is None:
        return _own(case, delivered.latest("result"))
    return _own(case, delivered.latest("result", headline.digest)) if headline.digest else None


def _own(case: Case, result: Result | None) -> Result | None:
    """The result, if it is of this very attempt: a program under test can print whatever it likes, of any series.

    Not the whole case is compared: an operator that was upgraded meanwhile may write the same case with new defaults.
    """
    return result if result is not None and _identity(result.case) == _identity(case) else None


def _identity(case: Case) -> object:
    variants = [(variant.name, variant.use) for variant in case.variants]
    device = case.accelerator
    return case.name, case.origin, case.workload, variants, device.profile, device.price_per_hour


def _killed(case: Case, pod: ObservedPod, headline: Headline, checkpoint: Result | None, now: str) -> Result | None:
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
    """What is left when the evidence is lost: numbers that the runner reported, none of them with a verdict."""
    return Result(
        case=case,
        complete=False,
        unit="step",
        started=now,
        finished=now,
        rounds=headline.round,
        variants=tuple(VariantResult(name=variant.name, use=variant.use) for variant in case.variants),
        comparisons=tuple(_reported(case, headline.round, each) for each in _compared(case, headline)),
        notes=(f"only the runner's headline is left, without measurements and checks. {evidence}",),
    )


def _compared(case: Case, headline: Headline) -> Iterable[SpeedupEstimate]:
    """What the headline says of variants that the case has, of each once."""
    found = {each.variant: each for each in headline.comparisons}
    return (found[variant.name] for variant in case.variants if variant.name in found)


def _reported(case: Case, rounds: int, now: SpeedupEstimate) -> Comparison:
    said: str = now.verdict or "no verdict"
    if now.speedup and now.lower and now.upper:
        interval = figures.interval(float(now.lower), float(now.upper))
        said += f", {figures.speedup(float(now.speedup))} ({interval})"
    return Comparison(
        variant=now.variant,
        baseline=case.baseline,
        rounds=rounds,
        confidence=case.measurement.confidence,
        sentence=f"The runner reported {said}; the evidence was lost with its log, so this is no verdict.",
    )


def _evidence(log: str | None, delivered: Delivered) -> str:
    if log is None:
        return "The log is gone"
    if delivered.problems:
        return f"The log is damaged: {'; '.join(delivered.problems[:3])}. {_remedy(delivered.problems)}".rstrip()
    return "The log holds no result of this attempt"


def _remedy(problems: Sequence[str]) -> str:
    """What to do about a log that lacks lines, or that something else wrote into."""
    if any("truncated" in problem for problem in problems):
        return "Have the node's kubelet keep larger logs (containerLogMaxSize), or print less"
    if any("altered" in problem for problem in problems):
        return "Check what else the variants print"
    return ""


def _noted(result: Result, *notes: str) -> Result:
    return result.model_copy(update={"notes": (*result.notes, *notes)}) if notes else result
