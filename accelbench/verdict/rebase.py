"""Compare any two variants of a stored result, not only those that its run compared."""

from accelbench.api.result import Result
from accelbench.problem import describe_unknown
from accelbench.stats.stopping import StoppingRule
from accelbench.verdict.pairwise import MeasuredVariants
from accelbench.verdict.redaction import redact_invalid


class NotComparableError(ValueError):
    """Report that a result cannot be compared with that baseline; the message gives the reason."""


def with_baseline(result: Result, baseline: str) -> Result:
    """Return the result with its variants compared with another baseline; raises NotComparableError if it cannot be.

    The baseline is chosen after the measurement, so the intervals are wider: they hold for all pairs of variants.
    """
    case = result.case
    names = [variant.name for variant in case.variants]
    if baseline not in names:
        raise NotComparableError(describe_unknown("variant", baseline, names))
    if baseline == case.baseline:
        return result
    if not result.comparisons:
        raise NotComparableError("nothing was compared in this result")
    result = redact_invalid(result)  # so that no invalid time is compared
    variants = result.variants
    measurement = case.measurement
    # A run with n variants compares n - 1 of them with the baseline in each case; all pairs are n / 2 times as many.
    all_pairs = case.comparisons_in_run * len(names) // 2
    measured = MeasuredVariants(
        seconds={
            variant.name: {launch.round: float(launch.seconds) for launch in variant.launches} for variant in variants
        },
        failures={variant.name: variant.failure for variant in variants if variant.failure},
        certificate=result.certificate,
        rule=StoppingRule(
            rounds_min=measurement.rounds_min,
            rounds_max=measurement.rounds_max,
            target=float(measurement.target_relative_error),
            confidence=float(measurement.confidence),
            comparisons=all_pairs * (2 if result.tail_comparisons else 1),  # each pair has a tail comparison too
        ),
        margin=float(measurement.equivalence_margin),
        noisy=bool(result.noisy),
        quantity=result.comparisons[0].quantity,  # all comparisons of a case have the same
    )
    note = f"compared with {baseline}, not the run's baseline {case.baseline}: intervals are widened for all pairs"
    return result.model_copy(
        update={
            "case": case.model_copy(update={"baseline": baseline}),
            "comparisons": tuple(measured.compare(name, baseline) for name in names if name != baseline),
            "tail_comparisons": (),  # those of the run are with its own baseline
            "notes": (*result.notes, note),
        }
    )
