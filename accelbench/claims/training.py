"""Compare whole trainings, compilation included: the total time of one variant with the total time of another. Pure.

A total is the time of the first call plus that of all later calls. The interval of the ratio combines the extremes of
the first calls with the bounds of the speedup's interval, so it is too wide rather than too narrow.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from accelbench.api.result import Comparison, PhaseTime, Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Training
from accelbench.claims.words import short, times
from accelbench.verdict.expectations import compare_with_bounds

FACTOR = 2
"""Half of the article's advantage is the minimum, and twice its advantage the maximum, that confirms a claim."""


@dataclass(frozen=True)
class _FirstCall:
    """Hold the time of compilation and first call together: a typical launch, and the two extremes."""

    typical_seconds: float
    minimum_seconds: float
    maximum_seconds: float


class TimeRatio(NamedTuple):
    """Hold the ratio of two total times, the baseline's divided by the variant's: its estimate, and its interval."""

    lowest: float
    typical: float
    highest: float


def evaluate(training: Training, result: Result) -> ClaimFinding:
    """Decide a claim about a training: compare the ratio of its two variants' total times with the bounds."""
    subject = condition(training, result.unit)
    ratio = total_time_ratio(training, result)
    if ratio is None:
        return ClaimFinding("undecided", f"{subject}: the two were not compared.")
    if result.rounds < result.case.measurement.rounds_min:
        return ClaimFinding("undecided", f"{subject}: too few rounds were measured.")
    minimum, maximum = bounds(training)
    # Bounds are passed as decimal strings, as manifests have them; "inf" is above every ratio.
    outcome = compare_with_bounds(ratio.lowest, ratio.highest, str(minimum), str(maximum))
    measured_text = times(ratio.typical, ratio.lowest, ratio.highest)
    has_figure = training.claims == "figure"
    excludes_figure = has_figure and not ratio.lowest <= float(training.article) <= ratio.highest
    return ClaimFinding(
        outcome, f"{subject}: {outcome}, {measured_text}.", is_valid=result.complete, excludes_figure=excludes_figure
    )


def total_time_ratio(training: Training, result: Result) -> TimeRatio | None:
    """Return the ratio of the whole trainings' times, compilation included: the baseline's divided by the variant's.

    None if the result has no verdict on the two variants.
    """
    variants = {variant.name: variant for variant in result.variants if variant.seconds}
    variant, baseline = variants.get(training.variant), variants.get(training.over)
    if variant is None or baseline is None:
        return None
    for comparison in result.comparisons:
        is_pair = comparison.variant == training.variant and comparison.baseline == training.over
        if is_pair and comparison.verdict:
            return _total_time_ratio(training.units, comparison, variant, baseline)
    return None


def bounds(training: Training) -> tuple[float, float]:
    """Return the lowest and the highest ratio that confirm the claim; the lowest may be 0, and the highest infinite."""
    minimum, maximum = _confirming_factors(training)
    if float(training.article) >= 1:
        return minimum, maximum
    # For a slower variant the factors say how many times as slow it is: 2 times as slow is a ratio of 1/2.
    return 1 / maximum, 1 / minimum


def _confirming_factors(training: Training) -> tuple[float, float]:
    """Return the smallest and the largest factor that confirm the claim, 2 and 5 for an article's factor of 3.

    A factor says how many times as fast a faster variant is, or how many times as slow a slower one; it is at least 1.
    Of a claim about the direction only, the largest factor is infinite.
    """
    article_ratio = float(training.article)
    article_factor = max(article_ratio, 1 / article_ratio)
    minimum = 1 + (article_factor - 1) / FACTOR
    maximum = math.inf if training.claims == "direction" else 1 + (article_factor - 1) * FACTOR
    return minimum, maximum


def condition(training: Training, unit: str) -> str:
    """Describe the condition: the variants, the number of units of work, the article's ratio, and the bounds.

    `unit` is the name of a unit of work, such as `epoch`.
    """
    return (
        f"{training.variant} over {training.units:,} {unit}s, compiling included (article: "
        f"{times(float(training.article))}), {bounds_in_words(training)} as {training.over}"
    )


def bounds_in_words(training: Training) -> str:
    """Describe the bounds: `1.22 to 1.88 times as fast`, or `at least 1.45 times as slow`."""
    minimum, maximum = _confirming_factors(training)
    text = f"{short(minimum)} to {short(maximum)}" if math.isfinite(maximum) else f"at least {short(minimum)}"
    return f"{text} times as {'fast' if float(training.article) >= 1 else 'slow'}"


def ratio_with_cache(training: Training, result: Result) -> float | None:
    """Return the ratio of the whole trainings' times if compiled programs are in a cache on disk: a typical value.

    None if the result does not compare the two variants, or if no launch read a cache.
    """
    variants = {variant.name: variant for variant in result.variants if variant.seconds}
    variant, baseline = variants.get(training.variant), variants.get(training.over)
    if variant is None or baseline is None or not (variant.warm_phases or baseline.warm_phases):
        return None
    return _total_seconds_with_cache(training.units, baseline) / _total_seconds_with_cache(training.units, variant)


def _total_seconds_with_cache(units: int, variant: VariantResult) -> float:
    """Return the typical time of a whole training of `units` units of work whose first call reads a cache, if any."""
    first_call = _first_call(variant.warm_phases or variant.phases)
    return first_call.typical_seconds + units * _seconds_per_unit(variant)


def _total_time_ratio(units: int, comparison: Comparison, variant: VariantResult, baseline: VariantResult) -> TimeRatio:
    """Return the ratio of the times of two whole trainings of `units` units of work, first call included.

    `comparison` has the speedup of the calls after the first. The variant's time of these calls follows from the
    baseline's and from the speedup, because only the speedup has an interval.
    """
    baseline_first, variant_first = _first_call(baseline.phases), _first_call(variant.phases)
    baseline_later_seconds = units * _seconds_per_unit(baseline)

    def ratio(baseline_first_seconds: float, variant_first_seconds: float, speedup: str | None) -> float:
        """Return the baseline's total time divided by the variant's: a total is the first call plus all later calls.

        `speedup` is that of the variant's later calls.
        """
        # A comparison with a verdict has a speedup and both bounds; `or 1` is for the type checker.
        variant_later_seconds = baseline_later_seconds / float(speedup or 1)
        baseline_total_seconds = baseline_first_seconds + baseline_later_seconds
        return baseline_total_seconds / (variant_first_seconds + variant_later_seconds)

    return TimeRatio(
        lowest=ratio(baseline_first.minimum_seconds, variant_first.maximum_seconds, comparison.lower),
        typical=ratio(baseline_first.typical_seconds, variant_first.typical_seconds, comparison.speedup),
        highest=ratio(baseline_first.maximum_seconds, variant_first.minimum_seconds, comparison.upper),
    )


def _seconds_per_unit(variant: VariantResult) -> float:
    """Return the variant's time of one unit of work, in seconds."""
    # The callers have excluded variants without a time; 0 is for the type checker.
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else 0.0


def _first_call(all_phases: Sequence[PhaseTime]) -> _FirstCall:
    """Return the time of the first call, compiling included."""
    phases = [phase for phase in all_phases if phase.phase in {"compile", "first-step"}]
    return _FirstCall(
        typical_seconds=sum(float(phase.median_seconds) for phase in phases),
        minimum_seconds=sum(float(phase.min_seconds) for phase in phases),
        maximum_seconds=sum(float(phase.max_seconds) for phase in phases),
    )
