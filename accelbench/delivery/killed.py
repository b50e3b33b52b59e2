"""Recover the result of a case whose runner was killed, from its last checkpoint and its headline.

On cgroup v2 an out-of-memory kill ends the whole container, supervisor included. The headline is rewritten before each
launch and names the variant that was running; the checkpoint in the log holds every complete round.
"""

from collections.abc import Iterable

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.result import Comparison, Failure, Result, VariantResult
from accelbench.delivery.log import Headline


class NoRunningVariantError(ValueError):
    """Report that no variant can be blamed for the kill, because the headline names none that was running."""


def result_of_killed(
    case: Case, checkpoint: Result | None, headline: Headline, *, reason: FailureReason, message: str, now: str
) -> Result:
    """Return the last checkpoint of a killed runner as an incomplete result in which the running variant has failed.

    A checkpoint is the result so far, which the runner writes to its log; without one, the returned result has no
    times. `headline` is the runner's termination message. `reason` and `message` say why the runner was killed; `now`
    is in RFC 3339.

    Raises:
        NoRunningVariantError: The headline names no running variant of the case.
    """
    names = [variant.name for variant in case.variants]
    if headline.state != "running" or headline.running not in names:
        raise NoRunningVariantError(f"case {case.name}: the runner was killed while no variant was running")
    blamed_variant = headline.running
    failure = Failure(reason=reason, message=message, round=headline.round)
    last = checkpoint or _empty_result(case, now)
    note = (
        f"the runner was killed in round {headline.round} while {blamed_variant} ran; complete rounds before it stand"
    )
    return last.model_copy(
        update={
            "complete": False,
            "stopped": StopReason.INTERRUPTED,
            "finished": now,
            "variants": tuple(_with_failure(variant, blamed_variant, failure) for variant in last.variants),
            "comparisons": _without_verdicts(last.comparisons, blamed_variant, failure),
            "tail_comparisons": _without_verdicts(last.tail_comparisons, blamed_variant, failure),
            "notes": (*last.notes, note),
        }
    )


def _with_failure(variant: VariantResult, blamed_variant: str, failure: Failure) -> VariantResult:
    """Add the failure to the blamed variant if it has none yet."""
    if variant.name != blamed_variant or variant.failure:
        return variant
    return variant.model_copy(update={"failure": failure})


def _without_verdicts(
    comparisons: Iterable[Comparison], blamed_variant: str, failure: Failure
) -> tuple[Comparison, ...]:
    """Return the comparisons; those with the blamed variant are without speedup, interval and verdict."""
    new_comparisons = []
    for comparison in comparisons:
        if blamed_variant in {comparison.variant, comparison.baseline}:
            new_comparisons.append(without_verdict(comparison, blamed_variant, failure))
        else:
            new_comparisons.append(comparison)
    return tuple(new_comparisons)


def _empty_result(case: Case, now: str) -> Result:
    """Return an incomplete result without rounds and times, for a case that has no checkpoint."""
    return Result(
        case=case,
        complete=False,
        unit="step",  # only the workload, which is not loaded here, knows its unit
        started=now,
        finished=now,
        rounds=0,
        variants=tuple(VariantResult(name=variant.name, use=variant.use) for variant in case.variants),
    )


def without_verdict(comparison: Comparison, blamed_variant: str, failure: Failure) -> Comparison:
    """Return the comparison without speedup, interval and verdict, because the blamed variant failed."""
    return Comparison(
        variant=comparison.variant,
        baseline=comparison.baseline,
        rounds=comparison.rounds,
        confidence=comparison.confidence,
        quantity=comparison.quantity,
        sentence=f"{blamed_variant} failed in round {failure.round} ({failure.reason}): nothing to compare.",
    )
