"""Whether rounds are independent of each other: what the interval rests on and cannot see for itself."""

import itertools
import math
from collections.abc import Sequence

FEWEST = 20
"""With fewer rounds the test sees little: at 5 it finds a lag-1 correlation of 0.7 in one series of five."""
THRESHOLD_DEVIATIONS = 2.326
"""One-sided 1 %: a correlation that is not there is reported once in a hundred series."""


def lag_one_correlation(values: Sequence[float]) -> float:
    """The correlation of each value with the next; 0 where nothing varies."""
    mean = math.fsum(values) / len(values)
    deviations = [value - mean for value in values]
    total = math.fsum(deviation**2 for deviation in deviations)
    products = math.fsum(first * second for first, second in itertools.pairwise(deviations))
    return products / total if total > 0 else 0.0


def correlation_limit(count: int) -> float:
    """The lag-1 correlation that `count` independent values exceed once in a hundred times.

    Mean -1/n and deviation (n-2)/(n sqrt(n-1)) of independent values: Kendall, Stuart and Ord, volume 3.
    """
    deviation = (count - 2) / (count * math.sqrt(count - 1))
    return THRESHOLD_DEVIATIONS * deviation - 1 / count
