"""What a launch and a variant are boiled down to; the standard library alone, for the supervisor reads this too."""

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FiveNumbers:
    """Quantiles of a sample, in the sample's own unit."""

    p5: float
    p25: float
    median: float
    p75: float
    p95: float


def seconds_per_unit(blocks: Iterable[tuple[int, float]]) -> float | None:
    """A launch's seconds per unit: the median over its blocks, each (units, seconds); None without a block."""
    values = [seconds / units for units, seconds in blocks]
    return statistics.median(values) if values else None


def five_numbers(values: Sequence[float]) -> FiveNumbers:
    """Quantiles with linear interpolation between order statistics (type 7 of Hyndman and Fan, 1996).

    A single value is all five; raises ValueError for an empty sample.
    """
    if not values:
        raise ValueError("an empty sample has no quantiles")
    if len(values) == 1:
        return FiveNumbers(*(values[0],) * 5)
    cuts = statistics.quantiles(values, n=20, method="inclusive")
    return FiveNumbers(p5=cuts[0], p25=cuts[4], median=cuts[9], p75=cuts[14], p95=cuts[18])
