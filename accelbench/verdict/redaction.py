"""Remove from a result what a failed check invalidates, before anything shows it.

Everything that shows a result to people or programs calls `redact_invalid` first, because results of older
versions hold times of variants that computed something else: docs/method/one-time-per-variant.md.
"""

from accelbench.api.result import Certificate, Comparison, Result, VariantResult
from accelbench.stats.summary import geometric_mean
from accelbench.validity.quarantine import failed_by_noise
from accelbench.verdict.rule import unclean


def redact_invalid(result: Result) -> Result:
    """Return `result` without the timings of variants that a check rejects."""
    variants = tuple(
        _without_timings(variant) if rejections(result, variant) else variant for variant in result.variants
    )
    return result.model_copy(update={"variants": variants})


def rejections(result: Result, variant: VariantResult) -> tuple[str, ...]:
    """Return the names of the checks that invalidate the timings of `variant`.

    These are the failed checks or, if none failed, `parity` and `non-finite` unless they passed. In a noisy result,
    checks that noise can fail are ignored. Empty for the protocols `observe` and `compile`, which time nothing.
    """
    if result.protocol in {"observe", "compile"}:
        return ()
    certificate = result.certificate
    if result.noisy:
        checks = (check for check in certificate.checks if check.name not in failed_by_noise())
        certificate = Certificate(checks=tuple(checks))
    return unclean(certificate, variant.name)


def step_seconds(variant: VariantResult) -> float | None:
    """Return the time of a variant in seconds per unit; None if it has none."""
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else None


def compared_seconds(result: Result, comparison: Comparison) -> tuple[float, float] | None:
    """Return the two times whose ratio is the speedup, baseline first; None if a variant has none.

    Each is the geometric mean over the rounds that both variants have.
    """
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
    return geometric_mean(times[0][number] for number in rounds), geometric_mean(times[1][number] for number in rounds)


def _without_timings(variant: VariantResult) -> VariantResult:
    """Remove everything timed; keep what was computed and compiled, which shows why the check failed."""
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
