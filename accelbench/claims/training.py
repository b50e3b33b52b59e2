"""Compare whole trainings, compilation included: the total time of one variant over another's. Pure.

A total is the first call and all later ones. Its interval combines the extremes of the first calls with the ends of the
speedup's interval, so it is rather too wide than too narrow.
"""

import math
from dataclasses import dataclass

from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Training
from accelbench.claims.words import short, times
from accelbench.verdict.expectations import compare_with_bounds

FACTOR = 2
"""Divisor of the article's advantage at the low end, and factor of its ratio at the high end."""


@dataclass(frozen=True)
class _FirstCall:
    """Hold the seconds of compilation and first call."""

    typical: float
    least: float
    most: float


def evaluate(training: Training, result: Result) -> ClaimFinding:
    """Compare the ratio of totals with the article's; undecided if the two variants were not soundly compared."""
    subject = condition(training, result.unit)
    interval = ratios(training, result)
    if interval is None:
        return ClaimFinding("undecided", f"{subject}: the two were not compared.")
    if result.rounds < result.case.measurement.rounds_min:
        return ClaimFinding("undecided", f"{subject}: too few rounds were measured.")
    lower, ratio, upper = interval
    least, most = bounds(training)
    outcome = compare_with_bounds(lower, upper, f"{least}", f"{most}")
    reading = times(ratio, lower, upper)
    return ClaimFinding(outcome, f"{subject}: {outcome}, {reading}.", sound=result.complete)


def ratios(training: Training, result: Result) -> tuple[float, float, float] | None:
    """Return how many times as fast the training is (lowest, measured, highest), or None if not compared."""
    compared = _compared(training, result)
    return _ratios(training, *compared) if compared else None


def _compared(training: Training, result: Result) -> tuple[Comparison, VariantResult, VariantResult] | None:
    """Return the comparison with a verdict and both variants, or None."""
    variants = {one.name: one for one in result.variants if one.seconds}
    over, variant = variants.get(training.over), variants.get(training.variant)
    for one in result.comparisons:
        if (one.variant, one.baseline) == (training.variant, training.over) and one.verdict and over and variant:
            return one, over, variant
    return None


def bounds(training: Training) -> tuple[float, float]:
    """Return the lowest and highest ratio that confirm the claim."""
    least, most = _allowed_advantage(training)
    return (least, most) if float(training.article) >= 1 else (1 / most, 1 / least)


def _allowed_advantage(training: Training) -> tuple[float, float]:
    """Return the lowest and highest advantage, as factors of at least 1."""
    article = float(training.article)
    ratio = max(article, 1 / article)
    return 1 + (ratio - 1) / FACTOR, math.inf if training.at_least_half else ratio * FACTOR


def condition(training: Training, unit: str) -> str:
    """Return the condition in words; `unit` is the workload's name of a unit of work."""
    article = float(training.article)
    least, most = _allowed_advantage(training)
    ends = f"at least {short(least)}" if training.at_least_half else f"{short(least)} to {short(most)}"
    held_to = f"{ends} times as {'fast' if article >= 1 else 'slow'}"
    whole = f"{training.variant} over {training.units:,} {unit}s, compiling included (article: {times(article)})"
    return f"{whole}, {held_to} as {training.over}"


def _ratios(
    training: Training, comparison: Comparison, over: VariantResult, variant: VariantResult
) -> tuple[float, float, float]:
    """Return the total of `over` divided by that of `variant`: lowest, measured, highest."""
    before, after = _first_call(over), _first_call(variant)
    steady = training.units * _seconds(over)
    lower, speedup, upper = (float(value or 1) for value in (comparison.lower, comparison.speedup, comparison.upper))
    return (
        (before.least + steady) / (after.most + steady / lower),
        (before.typical + steady) / (after.typical + steady / speedup),
        (before.most + steady) / (after.least + steady / upper),
    )


def _seconds(variant: VariantResult) -> float:
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else 0.0


def _first_call(variant: VariantResult) -> _FirstCall:
    """Return the seconds of compile and first step over the launches: sum of medians, minima and maxima."""
    phases = [phase for phase in variant.phases if phase.phase in {"compile", "first-step"}]
    return _FirstCall(
        typical=sum(float(phase.median_seconds) for phase in phases),
        least=sum(float(phase.min_seconds) for phase in phases),
        most=sum(float(phase.max_seconds) for phase in phases),
    )
