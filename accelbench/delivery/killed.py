"""The result of a case whose runner was killed whole: from its last checkpoint and its headline.

On cgroup v2 an out-of-memory kill takes the container, supervisor included. The headline, rewritten before each launch,
still names the variant that was running, and the checkpoint in the log holds every complete round.
"""

from accelbench.api.case import Case
from accelbench.api.reasons import FailureReason, StopReason
from accelbench.api.result import Comparison, Failure, Result, VariantResult
from accelbench.delivery.log import Headline


class NobodyRanError(ValueError):
    """The headline names no variant of the case that was running: none is to blame for the kill."""


def result_of_killed(
    case: Case, checkpoint: Result | None, headline: Headline, *, reason: FailureReason, message: str, now: str
) -> Result:
    """The checkpoint with the running variant's failure added; comparisons that do not involve it stand.

    `reason` and `message` say what killed the container; `now`, RFC 3339 UTC, stands in for times that nobody wrote
    down. The result is not complete. Raises NobodyRanError.
    """
    names = [variant.name for variant in case.variants]
    if headline.state != "running" or headline.running not in names:
        raise NobodyRanError(f"case {case.name}: the runner was killed while no variant was running")
    blamed = headline.running
    failure = Failure(reason=reason, message=message, round=headline.round)
    before = checkpoint or _nothing_yet(case, now)
    return before.model_copy(
        update={
            "complete": False,
            "stopped": StopReason.INTERRUPTED,
            "finished": now,
            "variants": tuple(
                variant.model_copy(update={"failure": variant.failure or failure})
                if variant.name == blamed
                else variant
                for variant in before.variants
            ),
            **{
                name: tuple(
                    without_finding(comparison, blamed, failure)
                    if blamed in {comparison.variant, comparison.baseline}
                    else comparison
                    for comparison in comparisons
                )
                for name, comparisons in (
                    ("comparisons", before.comparisons),
                    ("tail_comparisons", before.tail_comparisons),
                )
            },
            "notes": (
                *before.notes,
                f"the runner was killed in round {headline.round} while {blamed} ran; complete rounds before it stand",
            ),
        }
    )


def _nothing_yet(case: Case, now: str) -> Result:
    return Result(
        case=case,
        complete=False,
        unit="step",
        started=now,
        finished=now,
        rounds=0,
        variants=tuple(VariantResult(name=variant.name, use=variant.use) for variant in case.variants),
    )


def without_finding(comparison: Comparison, blamed: str, failure: Failure) -> Comparison:
    """The comparison as it is once `blamed`, one of its sides, has failed."""
    return Comparison(
        variant=comparison.variant,
        baseline=comparison.baseline,
        rounds=comparison.rounds,
        confidence=comparison.confidence,
        quantity=comparison.quantity,
        sentence=f"{blamed} failed in round {failure.round} ({failure.reason}): nothing to compare.",
    )
