"""Any two variants of a stored result can be compared, not only those that its run compared."""

from accelbench.api.result import Result
from accelbench.problem import unknown
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench.verdict.redaction import redact_invalid


class NotComparableError(ValueError):
    """The result cannot be read against that baseline; the message says why."""


def with_baseline(result: Result, baseline: str) -> Result:
    """The result as if `baseline` had been the run's; raises NotComparableError.

    Whoever picks a baseline afterwards could have picked any, so the intervals pay for all pairs of variants, and are a
    little wider than those of a run that names it. When compiling pays back is not known here.
    """
    case = result.case
    names = [variant.name for variant in case.variants]
    if baseline not in names:
        raise NotComparableError(unknown("variant", baseline, names))
    if baseline == case.baseline:
        return result
    if not result.comparisons:
        raise NotComparableError("nothing was compared in this result")
    result = redact_invalid(result)
    measurement = case.measurement
    all_pairs = case.comparisons_in_run * len(names) // 2
    measured = MeasuredVariants(
        seconds={
            each.name: {launch.round: float(launch.seconds) for launch in each.launches} for each in result.variants
        },
        failures={each.name: each.failure for each in result.variants if each.failure},
        certificate=result.certificate,
        rule=StoppingRule(
            rounds_min=measurement.rounds_min,
            rounds_max=measurement.rounds_max,
            target=float(measurement.target_relative_error),
            confidence=float(measurement.confidence),
            comparisons=all_pairs * (2 if result.tail_comparisons else 1),
        ),
        margin=float(measurement.equivalence_margin),
        noisy=bool(result.noisy),
        quantity=result.comparisons[0].quantity,
    )
    note = f"compared with {baseline}, not the run's baseline {case.baseline}: intervals are widened for all pairs"
    return result.model_copy(
        update={
            "case": case.model_copy(update={"baseline": baseline}),
            "comparisons": tuple(measured.compare(name, baseline) for name in names if name != baseline),
            "tail_comparisons": (),
            "notes": (*result.notes, note),
        }
    )
