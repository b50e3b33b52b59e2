"""Compute the geometric mean of ratios, with the range of the means that leave one of them out. Pure.

The mean describes the given ratios and no others: it has no interval, because the cases of a suite are chosen and not
drawn at random. The range shows how much of the mean is one case's.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_RATIOS = 2
"""With a single ratio, nothing is left if one is left out."""


@dataclass(frozen=True)
class RatioMean:
    """Hold the geometric mean of ratios, and the smallest and largest mean of all ratios but one."""

    mean: float
    lowest: float
    highest: float
    count: int
    """Number of ratios."""


def mean_of_ratios(ratios: Sequence[float]) -> RatioMean | None:
    """Return the geometric mean of positive ratios, with its leave-one-out range; None with fewer than two ratios."""
    count = len(ratios)
    if count < MINIMUM_RATIOS:
        return None
    logarithms = [math.log(ratio) for ratio in ratios]
    total = math.fsum(logarithms)  # exact before its only rounding, so the order does not matter
    means_without_one = [math.exp((total - logarithm) / (count - 1)) for logarithm in logarithms]
    return RatioMean(math.exp(total / count), min(means_without_one), max(means_without_one), count)
