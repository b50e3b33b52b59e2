"""Test whether rounds are independent, which the interval assumes and cannot test."""

import itertools
import math
from collections.abc import Sequence

MINIMUM_ROUNDS = 20
"""Minimum number of rounds for the test: with 5 it detects a lag-1 correlation of 0.7 in only one series of five."""
THRESHOLD_DEVIATIONS = 2.326
"""Normal quantile at 99 %: one false alarm in a hundred independent series."""


def lag_one_correlation(values: Sequence[float]) -> float:
    """Return the correlation of each value with the next (autocorrelation at lag 1); 0 if all values are equal."""
    mean = math.fsum(values) / len(values)
    deviations = [value - mean for value in values]
    squares = math.fsum(deviation**2 for deviation in deviations)
    products = math.fsum(first * second for first, second in itertools.pairwise(deviations))
    return products / squares if squares > 0 else 0.0


def correlation_limit(count: int) -> float:
    """Return the lag-1 correlation that one in a hundred samples of `count` independent values exceeds."""
    # Mean and standard deviation are from Kendall, Stuart and Ord, volume 3.
    mean = -1 / count
    standard_deviation = (count - 2) / (count * math.sqrt(count - 1))
    return mean + THRESHOLD_DEVIATIONS * standard_deviation


def effective_size(values: Sequence[float]) -> float:
    """Return how many independent values would estimate the mean as well as these autocorrelated ones.

    That is n / (1 + 2 * the sum of the autocorrelations at lags 1, 2, ...). They are summed in pairs until the sum of a
    pair is not positive (Geyer, "Practical Markov Chain Monte Carlo", 1992, section 3.3). The result is at least 1 and
    at most n, the number of values.
    """
    from scipy.fft import irfft, next_fast_len, rfft  # imported here, as most importers do not need scipy

    count = len(values)
    mean = math.fsum(values) / count
    deviations = [value - mean for value in values]
    length = next_fast_len(2 * count, real=True)  # zero padding, so that the series does not wrap around
    spectrum = rfft(deviations, length)
    # The inverse transform of the power spectrum is the autocovariance, by lag (Wiener-Khinchin theorem).
    covariances = irfft(spectrum.real**2 + spectrum.imag**2, length)[:count].tolist()
    if covariances[0] <= 0:  # all values are equal
        return float(count)
    # The first pair contains lag 0, whose autocorrelation 1 counts only once: begin at -1.
    inflation = -1.0
    for lag in range(0, count - 1, 2):
        pair = (covariances[lag] + covariances[lag + 1]) / covariances[0]
        if pair <= 0:
            break
        inflation += 2 * pair
    if inflation <= 0:  # the first autocorrelation is near -1: n / inflation would be infinite or negative
        return float(count)
    return min(float(count), max(1.0, count / inflation))
