"""Detect change points in a series of results over time: since when a benchmark is slower than its noise explains.

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
"""Penalty of a change point, in variances of the mean of one result times twice the logarithm of the series' length.

benchmarks/series.py measures its false alarms.
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


def find_change_points(values: Sequence[float], *, least: float = 0.0) -> tuple[ChangePoint, ...]:
    """Return the change points of a series, in order; none with fewer than ten results.

    Args:
        values: Positive numbers in order of time.
        least: Changes of the level by less than this, relative, are left out.

    Raises:
        ImportError: ruptures is not installed.
    """
    if len(values) < MINIMUM_RESULTS:
        return ()
    logs = _without_outliers([math.log(value) for value in values])
    ends = _choose(logs, _segmentations(logs))
    levels = [statistics.median(logs[begin:end]) for begin, end in itertools.pairwise([0, *ends])]
    changes = zip(ends[:-1], itertools.pairwise(levels), strict=True)
    return tuple(
        ChangePoint(index=index, ratio=math.exp(after - before))
        for index, (before, after) in changes
        if abs(after - before) > math.log1p(least)
    )


def _without_outliers(logs: Sequence[float]) -> list[float]:
    """Limit each value to three standard deviations from the median of the five values around it."""
    medians = [statistics.median(logs[max(0, index - 2) : index + 3]) for index in range(len(logs))]
    residuals = [value - median for value, median in zip(logs, medians, strict=True)]
    # 1.4826 makes the median deviation a standard deviation; 0.8, because the median of five follows the value itself.
    limit = 3 * 1.4826 * statistics.median(map(abs, residuals)) / 0.8
    return [median + max(-limit, min(limit, residual)) for median, residual in zip(medians, residuals, strict=True)]


def _segmentations(logs: Sequence[float]) -> list[list[int]]:
    """Return, for each number of change points from 0, where the best segments end."""
    import numpy as np
    import ruptures

    search = ruptures.KernelCPD(kernel="linear", min_size=MINIMUM_SEGMENT).fit(np.array(logs).reshape(-1, 1))
    maximum = min(MAXIMUM_CHANGE_POINTS, len(logs) // MINIMUM_SEGMENT - 1)
    ends: list[list[int]] = [[len(logs)]]
    ends += [[int(end) for end in search.predict(n_bkps=number)] for number in range(1, maximum + 1)]
    return ends


def _choose(logs: Sequence[float], candidates: list[list[int]]) -> list[int]:
    """Return the candidate with the most change points whose reduction of the residuals exceeds their penalty.

    `candidates` have 0, 1, 2 ... change points. The penalty of one is computed from the residuals that the candidate
    under test leaves.
    """
    chosen = candidates[0]
    for number, candidate in enumerate(candidates[1:], start=1):
        reduction = _sum_of_squares(logs, chosen) - _sum_of_squares(logs, candidate)
        penalty = PENALTY * 2 * math.log(len(logs)) * _variance_of_mean(logs, candidate)
        if reduction > (number - candidates.index(chosen)) * penalty:
            chosen = candidate
    return chosen


def _residuals(logs: Sequence[float], ends: Sequence[int]) -> list[float]:
    """Return each value's deviation from the mean of its segment."""
    segments = [logs[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    return [value - math.fsum(segment) / len(segment) for segment in segments for value in segment]


def _sum_of_squares(logs: Sequence[float], ends: Sequence[int]) -> float:
    return math.fsum(value**2 for value in _residuals(logs, ends))


def _variance_of_mean(logs: Sequence[float], ends: Sequence[int]) -> float:
    """Return the variance of a mean times the number of results: the residuals', inflated by autocorrelation."""
    residuals = _residuals(logs, ends)
    free = len(logs) - len(ends)
    variance = math.fsum(value**2 for value in residuals) / free
    if variance <= 0:
        return 0.0
    products = math.fsum(first * second for first, second in itertools.pairwise(residuals))
    # Subtracting the means of short segments reduces the correlation by 2 / n per segment on average (Kendall, 1954).
    correlation = products / (free * variance) + 2 * len(ends) / len(logs)
    correlation = min(MAXIMUM_CORRELATION, max(0.0, correlation))
    return variance * (1 + correlation) / (1 - correlation)
