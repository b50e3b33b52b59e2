"""Detect change points in a series of results: results since which a benchmark is lastingly slower or faster.

A series holds one number for each result of the same benchmark with the same fingerprint, in order of time. The library
ruptures finds the best segments for each number of change points (Truong, Oudre and Vayatis, "Selective review of
offline change point detection methods", Signal Processing 2020; exact, by dynamic programming). This module decides how
many there are, because a textbook penalty detects change points in a third of the series that have none but are
autocorrelated: nightly results share the state of a machine for days. So the penalty grows with the autocorrelation
that remains between the change points.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_RESULTS = 10
"""Minimum number of results of a series in which change points are looked for."""
MINIMUM_SEGMENT = 3
"""Minimum number of results between two change points: a single odd result is an outlier."""
MAXIMUM_CHANGE_POINTS = 8
PENALTY = 3.0
"""Penalty of a change point, as a multiple of 2 log(n) times the long-run variance of the series of n results.

benchmarks/series.py measures how often this gives false alarms.
"""
MAXIMUM_CORRELATION = 0.8
"""Maximum lag-1 correlation assumed: above it autocorrelation and change points cannot be distinguished."""


@dataclass(frozen=True)
class ChangePoint:
    """Describe a lasting change between one result and the next."""

    index: int
    """Index of the first result after the change."""
    ratio: float
    """Level after the change over the level before; for seconds, above 1 is slower."""


def find_change_points(values: Sequence[float], *, minimum_change: float = 0.0) -> tuple[ChangePoint, ...]:
    """Return the change points of a series, in order of time.

    Args:
        values: Positive numbers in order of time.
        minimum_change: Smaller relative changes are left out: 0.02 is 2 %.

    Raises:
        ImportError: ruptures is not installed.
    """
    if len(values) < MINIMUM_RESULTS:
        return ()
    logarithms = _limit_outliers([math.log(value) for value in values])
    ends = _choose_segments(logarithms, _find_best_segments(logarithms))
    levels = [statistics.median(logarithms[begin:end]) for begin, end in itertools.pairwise([0, *ends])]
    change_points = []
    for index, before, after in zip(ends[:-1], levels[:-1], levels[1:], strict=True):
        log_ratio = after - before
        if abs(log_ratio) > math.log1p(minimum_change):
            change_points.append(ChangePoint(index=index, ratio=math.exp(log_ratio)))
    return tuple(change_points)


def _limit_outliers(logarithms: Sequence[float]) -> list[float]:
    """Limit each value to three standard deviations from the median of itself and two neighbours on either side."""
    medians = [statistics.median(logarithms[max(0, index - 2) : index + 3]) for index in range(len(logarithms))]
    residuals = [value - median for value, median in zip(logarithms, medians, strict=True)]
    # The factor 1.4826 turns a median deviation of normally distributed values into a standard deviation. The factor
    # 0.8 is needed because each value is one of the five in its median, which makes residuals smaller.
    limit = 3 * 1.4826 * statistics.median(map(abs, residuals)) / 0.8
    return [median + max(-limit, min(limit, residual)) for median, residual in zip(medians, residuals, strict=True)]


def _find_best_segments(logarithms: Sequence[float]) -> list[list[int]]:
    """Return the best divisions of the series into 1, 2, 3, ... segments.

    A division is the list of the index after each segment. The best one has the smallest sum of squared deviations from
    the means of its segments.
    """
    import numpy as np
    import ruptures

    search = ruptures.KernelCPD(kernel="linear", min_size=MINIMUM_SEGMENT).fit(np.array(logarithms).reshape(-1, 1))
    maximum_segments = len(logarithms) // MINIMUM_SEGMENT
    maximum_change_points = min(MAXIMUM_CHANGE_POINTS, maximum_segments - 1)
    undivided = [len(logarithms)]
    divided = [search.predict(n_bkps=count) for count in range(1, maximum_change_points + 1)]
    return [undivided, *([int(end) for end in ends] for ends in divided)]


def _choose_segments(logarithms: Sequence[float], candidates: list[list[int]]) -> list[int]:
    """Return the division with the most change points that the data justify.

    A division with more change points is justified if they reduce the sum of squared residuals by more than a penalty
    for each additional one. `candidates[k]` is the division with k change points: the index after each segment.
    """
    chosen, chosen_count = candidates[0], 0
    for count, candidate in enumerate(candidates[1:], start=1):
        reduction = _sum_of_squares(logarithms, chosen) - _sum_of_squares(logarithms, candidate)
        penalty = PENALTY * 2 * math.log(len(logarithms)) * _long_run_variance(logarithms, candidate)
        if reduction > (count - chosen_count) * penalty:
            chosen, chosen_count = candidate, count
    return chosen


def _residuals(logarithms: Sequence[float], ends: Sequence[int]) -> list[float]:
    """Return how far each value is from the mean of its segment; `ends` has the index after each segment."""
    segments = [logarithms[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    return [value - math.fsum(segment) / len(segment) for segment in segments for value in segment]


def _sum_of_squares(logarithms: Sequence[float], ends: Sequence[int]) -> float:
    """Return the sum of squared deviations from the means of the segments; `ends` has the index after each segment."""
    return math.fsum(value**2 for value in _residuals(logarithms, ends))


def _long_run_variance(logarithms: Sequence[float], ends: Sequence[int]) -> float:
    """Return the variance of the residuals times (1 + r) / (1 - r), where r is their lag-1 correlation.

    The correlation is limited to the range from 0 to `MAXIMUM_CORRELATION`. `ends` has the index after each
    segment. Divided by n, the returned value is the variance of the mean of n results of an autoregressive process of
    order 1.
    """
    residuals = _residuals(logarithms, ends)
    degrees_of_freedom = len(logarithms) - len(ends)
    variance = math.fsum(value**2 for value in residuals) / degrees_of_freedom
    if variance <= 0:
        return 0.0
    products = math.fsum(first * second for first, second in itertools.pairwise(residuals))
    # Subtracting the mean of each segment reduces the correlation by 2 / n per segment on average (Kendall, 1954).
    correlation = products / (degrees_of_freedom * variance) + 2 * len(ends) / len(logarithms)
    correlation = min(MAXIMUM_CORRELATION, max(0.0, correlation))
    return variance * (1 + correlation) / (1 - correlation)
