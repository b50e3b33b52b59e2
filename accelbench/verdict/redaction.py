"""What may be shown of a result: each variant's time by one estimator, and none of a variant that a check rejects.

Pure. Whatever shows a result to people or programs asks here first, results of older versions included: they hold times
of variants that computed something else. docs/method/one-time-per-variant.md has the reasons.
"""

from accelbench.api.result import Certificate, Comparison, Result, VariantResult
from accelbench.stats.summary import geometric_mean
from accelbench.validity.quarantine import failed_by_noise
from accelbench.verdict.rule import unclean


def redact_invalid(result: Result) -> Result:
    """`result` as it may be shown."""
    variants = tuple(_withheld(each) if rejections(result, each) else each for each in result.variants)
    return result.model_copy(update={"variants": variants})


def rejections(result: Result, variant: VariantResult) -> tuple[str, ...]:
    """The checks for which nothing that was timed of `variant` stands: parity too, as long as it is not known."""
    if result.protocol in {"observe", "compile"}:
        return ()
    certificate = result.certificate
    if result.noisy:
        kept = (check for check in certificate.checks if check.name not in failed_by_noise())
        certificate = Certificate(checks=tuple(kept))
    return unclean(certificate, variant.name)


def step_seconds(variant: VariantResult) -> float | None:
    """The time of a variant that is shown, in seconds per unit; None where it has none."""
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else None


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


def _withheld(variant: VariantResult) -> VariantResult:
    """What was computed and compiled stays, for whoever looks for the reason; what was timed goes."""
    return variant.model_copy(
        update={
            "seconds": None,
            "phases": (),
            "warm_phases": (),
            "launches": (),
            "spread": None,
            "numbers": variant.numbers.without_timed(),
        }
    )
