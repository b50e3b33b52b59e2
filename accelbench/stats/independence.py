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


def effective_size(values: Sequence[float]) -> float:
    """How many independent values a series is worth for its mean: at most its length, at least one.

    Length over 1 + 2 times the sum of the autocorrelations, which are summed in pairs for as long as a pair is above
    zero (Geyer, "Practical Markov chain Monte Carlo", Statistical Science 1992, section 3.3). Where nothing varies, or
    each value makes up for the one before it, the length.
    """
    from scipy.fft import irfft, next_fast_len, rfft  # here, so that whoever reads a correlation need not load scipy

    count = len(values)
    mean = math.fsum(values) / count
    deviations = [value - mean for value in values]
    length = next_fast_len(2 * count, real=True)  # so long that no end of the series meets its beginning
    spectrum = rfft(deviations, length)
    covariances = irfft(spectrum.real**2 + spectrum.imag**2, length)[:count].tolist()
    if covariances[0] <= 0:
        return float(count)
    total = -1.0
    for index in range(0, count - 1, 2):
        pair = (covariances[index] + covariances[index + 1]) / covariances[0]
        if pair <= 0:
            break
        total += 2 * pair
    return min(float(count), max(1.0, count / total)) if total > 0 else float(count)
