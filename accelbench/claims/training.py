"""What a whole training takes, compiling included: the total of one variant over that of another. Pure.

A total is the first call and all later ones. The interval takes the first call at its least and its most, and the later
ones at the ends of the speedup's own interval, so that it is rather too wide than too narrow.
"""

import math
from dataclasses import dataclass

from accelbench.api.result import Comparison, Result, VariantResult
from accelbench.claims.finding import ClaimFinding
from accelbench.claims.ledger import Training
from accelbench.claims.words import short, times
from accelbench.verdict.expectations import compare_with_bounds

FACTOR = 2
"""An advantage may be this much less than the article's, and a ratio this much more."""


@dataclass(frozen=True)
class _FirstCall:
    """Seconds of compiling and of the first call."""

    typical: float
    least: float
    most: float


def evaluate(training: Training, result: Result) -> ClaimFinding:
    """The ratio of the totals held against the article's; undecided where the two were not soundly compared."""
    subject = named(training, result.unit)
    found = ratios(training, result)
    if found is None:
        return ClaimFinding("undecided", f"{subject}: the two were not compared.")
    if result.rounds < result.case.measurement.rounds_min:
        return ClaimFinding("undecided", f"{subject}: too few rounds were measured.")
    lower, ratio, upper = found
    least, most = bounds(training)
    outcome = compare_with_bounds(lower, upper, f"{least}", f"{most}")
    reading = times(ratio, lower, upper)
    return ClaimFinding(outcome, f"{subject}: {outcome}, {reading}.", sound=result.complete)


def ratios(training: Training, result: Result) -> tuple[float, float, float] | None:
    """How many times as fast the whole training is: at the least, as measured, at the most; None: not compared."""
    found = _compared(training, result)
    return _ratios(training, *found) if found else None


def _compared(training: Training, result: Result) -> tuple[Comparison, VariantResult, VariantResult] | None:
    """The comparison of the two, and both, where it has a verdict."""
    variants = {each.name: each for each in result.variants if each.seconds}
    over, variant = variants.get(training.over), variants.get(training.variant)
    for each in result.comparisons:
        if (each.variant, each.baseline) == (training.variant, training.over) and each.verdict and over and variant:
            return each, over, variant
    return None


def bounds(training: Training) -> tuple[float, float]:
    """How many times as fast the variant may be: at the least, and at the most."""
    least, most = _allowed(training)
    return (least, most) if float(training.article) >= 1 else (1 / most, 1 / least)


def _allowed(training: Training) -> tuple[float, float]:
    """Of the advantage or the disadvantage: at least half of the article's, and twice its ratio or no other end."""
    article = float(training.article)
    ratio = max(article, 1 / article)
    return 1 + (ratio - 1) / FACTOR, math.inf if training.at_least_half else ratio * FACTOR


def named(training: Training, unit: str) -> str:
    """What is held against the article, and within what; `unit` is what the workload calls one of its units of work."""
    article = float(training.article)
    least, most = _allowed(training)
    ends = f"at least {short(least)}" if training.at_least_half else f"{short(least)} to {short(most)}"
    held_to = f"{ends} times as {'fast' if article >= 1 else 'slow'}"
    whole = f"{training.variant} over {training.units:,} {unit}s, compiling included (article: {times(article)})"
    return f"{whole}, {held_to} as {training.over}"


def _ratios(
    training: Training, comparison: Comparison, over: VariantResult, variant: VariantResult
) -> tuple[float, float, float]:
    """The total of `over` divided by that of `variant`: at the least, as measured, at the most."""
    before, after = _first_call(over), _first_call(variant)
    steady = training.units * _seconds(over)
    lower, speedup, upper = (float(each or 1) for each in (comparison.lower, comparison.speedup, comparison.upper))
    return (
        (before.least + steady) / (after.most + steady / lower),
        (before.typical + steady) / (after.typical + steady / speedup),
        (before.most + steady) / (after.least + steady / upper),
    )


def _seconds(variant: VariantResult) -> float:
    return float(variant.seconds.geometric_mean_seconds) if variant.seconds else 0.0


def _first_call(variant: VariantResult) -> _FirstCall:
    phases = [each for each in variant.phases if each.phase in {"compile", "first-step"}]
    return _FirstCall(
        typical=sum(float(each.median_seconds) for each in phases),
        least=sum(float(each.min_seconds) for each in phases),
        most=sum(float(each.max_seconds) for each in phases),
    )
