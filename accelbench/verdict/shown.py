"""What may be shown of a result: each variant's time by one estimator, and none of a variant that a check rejects.

Pure. Whatever shows a result to people or programs asks here first, results of older versions included: they lack the
estimator, and hold times of variants that computed something else. docs/adr/0021-one-time-for-a-variant.md has the
reasons.
"""

import math

from accelbench.api.result import Certificate, Comparison, Quantiles, Result, VariantResult
from accelbench.document import DecimalString, decimal_string
from accelbench.stats.summary import TIME_DIGITS, geometric_mean
from accelbench.verdict.rule import unclean


def shown(result: Result) -> Result:
    """`result` as it may be shown."""
    known = with_times(result)
    variants = (_withheld(each) if rejections(result, each) else each for each in known.variants)
    return result.model_copy(update={"variants": tuple(map(_without_rates_of_the_median, variants))})


def with_times(result: Result) -> Result:
    """`result` with each variant's time by the estimator, which results of older versions lack."""
    variants = tuple(_with_time(result, variant) for variant in result.variants)
    return result.model_copy(update={"variants": variants})


def rejections(result: Result, variant: VariantResult) -> tuple[str, ...]:
    """The checks for which nothing that was timed of `variant` stands: parity too, as long as it is not known."""
    if result.protocol == "observe":
        return ()
    certificate = result.certificate
    if result.noisy:
        from accelbench.validity.quarantine import failed_by_noise  # here, as it loads every check

        kept = (check for check in certificate.checks if check.name not in failed_by_noise())
        certificate = Certificate(checks=tuple(kept))
    return unclean(certificate, variant.name)


def step_seconds(variant: VariantResult) -> float | None:
    """The time of a variant that is shown, in seconds per unit; None where it has none."""
    found = variant.seconds.geometric_mean_seconds if variant.seconds else None
    return None if found is None else float(found)


def compared_seconds(result: Result, comparison: Comparison) -> tuple[float, float] | None:
    """The times whose ratio is the speedup, baseline's first: those over the rounds that both sides have."""
    sides = {variant.name: variant for variant in result.variants}
    if not {comparison.baseline, comparison.variant} <= sides.keys():
        return None
    before, after = sides[comparison.baseline], sides[comparison.variant]
    times = [{launch.round: float(launch.seconds) for launch in side.launches} for side in (before, after)]
    if times[0].keys() == times[1].keys():
        whole = step_seconds(before), step_seconds(after)
        return None if None in whole else (whole[0] or 0.0, whole[1] or 0.0)
    rounds = times[0].keys() & times[1].keys()
    if not rounds:
        return None
    return geometric_mean(times[0][each] for each in rounds), geometric_mean(times[1][each] for each in rounds)


def holds_every_launch(result: Result, variant: VariantResult) -> bool:
    """Whether none was left out to make the result fit: those that are there make up the time.

    An older result has no time to hold them against; a variant that failed has fewer launches than there are rounds.
    """
    time, launches = step_seconds(variant), [float(launch.seconds) for launch in variant.launches]
    if time is None or not launches:
        return variant.failure is not None or len(launches) >= result.rounds
    return math.isclose(geometric_mean(launches), time, rel_tol=1e-6)


def _with_time(result: Result, variant: VariantResult) -> VariantResult:
    if variant.seconds is None or variant.seconds.geometric_mean_seconds is not None:
        return variant
    if not (variant.launches and holds_every_launch(result, variant)):
        # An older result without all its launches knows their quantiles alone: the median is another number.
        return variant
    return _with_estimator(variant, variant.seconds, geometric_mean(float(each.seconds) for each in variant.launches))


def _withheld(variant: VariantResult) -> VariantResult:
    """What was computed and compiled stays, for whoever looks for the reason; what was timed goes."""
    return variant.model_copy(
        update={
            "seconds": None,
            "phases": (),
            "warm_phases": (),
            "launches": (),
            "spread": None,
            "flops_per_second": None,
            "cost": None,
        }
    )


def _without_rates_of_the_median(variant: VariantResult) -> VariantResult:
    """What is made of a time that is not known is not shown either."""
    if variant.seconds is None or step_seconds(variant) is not None:
        return variant
    return variant.model_copy(update={"flops_per_second": None, "cost": None})


def _with_estimator(variant: VariantResult, before: Quantiles, seconds: float) -> VariantResult:
    """A variant of an older result, whose rates were made of the median `before`."""
    slower = seconds / float(before.median_seconds)

    def scaled(value: DecimalString | None, factor: float) -> DecimalString | None:
        return None if value is None else decimal_string(float(value) * factor)

    cost = variant.cost and variant.cost.model_copy(
        update={
            **{
                name: scaled(getattr(variant.cost, name), 1 / slower)
                for name in ("flops_per_second", "bytes_per_second", "share")
            },
            "joules_per_unit": scaled(variant.cost.joules_per_unit, slower),
        }
    )
    return variant.model_copy(
        update={
            "seconds": before.model_copy(update={"geometric_mean_seconds": decimal_string(seconds, TIME_DIGITS)}),
            "flops_per_second": scaled(variant.flops_per_second, 1 / slower),
            "cost": cost,
        }
    )
