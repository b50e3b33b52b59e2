"""Remove from a result what a failed check invalidates, before anything shows it.

Everything that shows a result to people or programs calls `redact_invalid` first, because results of older
versions hold times of variants that computed something else: docs/method/one-time-per-variant.md.
"""

from accelbench.api.result import Certificate, Comparison, Result, VariantResult
from accelbench.stats.summary import geometric_mean
from accelbench.validity.quarantine import noise_check_names
from accelbench.verdict.rule import checks_against_verdict


def redact_invalid(result: Result) -> Result:
    """Return `result` without the times of variants that a failed check makes invalid."""
    variants = tuple(
        _without_timings(variant) if rejections(result, variant) else variant for variant in result.variants
    )
    return result.model_copy(update={"variants": variants})


def rejections(result: Result, variant: VariantResult) -> tuple[str, ...]:
    """Return the names of the checks that make the times of `variant` invalid; none if the case measures no times."""
    if result.protocol in {"observe", "compile"}:
        return ()
    certificate = result.certificate
    if result.noisy:  # rounds count although other load disturbed them, so checks of that load do not count
        checks = (check for check in certificate.checks if check.name not in noise_check_names())
        certificate = Certificate(checks=tuple(checks))
    return checks_against_verdict(certificate, variant.name)


def step_seconds(variant: VariantResult) -> float | None:
    """Return the variant's seconds per unit, as the geometric mean over launches; None without times."""
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else None


def compared_seconds(result: Result, comparison: Comparison) -> tuple[float, float] | None:
    """Return the baseline's and the variant's seconds per unit, whose ratio is the speedup; None if either is missing.

    Each time is the geometric mean over the rounds that have both variants.
    """
    variants = {variant.name: variant for variant in result.variants}
    if comparison.baseline not in variants or comparison.variant not in variants:
        return None
    baseline, variant = variants[comparison.baseline], variants[comparison.variant]
    baseline_times = {launch.round: float(launch.seconds) for launch in baseline.launches}
    variant_times = {launch.round: float(launch.seconds) for launch in variant.launches}
    if baseline_times.keys() == variant_times.keys():  # the stored means are over the same rounds
        baseline_seconds, variant_seconds = step_seconds(baseline), step_seconds(variant)
        if baseline_seconds is None or variant_seconds is None:
            return None
        return baseline_seconds, variant_seconds
    rounds = baseline_times.keys() & variant_times.keys()
    if not rounds:
        return None
    return (
        geometric_mean(baseline_times[number] for number in rounds),
        geometric_mean(variant_times[number] for number in rounds),
    )


def _without_timings(variant: VariantResult) -> VariantResult:
    """Return the variant without its times. Its other numbers stay, because they show why a check failed."""
    return variant.model_copy(
        update={
            "seconds": None,
            "phases": (),
            "warm_phases": (),
            "launches": (),
            "spread": None,
            "operation_times": None,
            "numbers": variant.numbers.without_timed(),
        }
    )
