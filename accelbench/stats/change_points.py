"""Steps in a series of results over time: since when something is slower, told from the noise between results.

A series holds one number for each result of the same benchmark with the same fingerprint, in the order of time. The
segments that fit best for each number of steps are ruptures' (Truong, Oudre and Vayatis, "Selective review of offline
change point detection methods", Signal Processing 2020; exact, by dynamic programming); how many there are is decided
here, because a textbook penalty finds steps in a third of series that have none but remember: nightly results share a
machine's mood for days. So the price of a step is raised by the series' own memory, as it is between the steps.
"""

import itertools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 10
"""Results that a series must have for steps to be looked for."""
SHORTEST = 3
"""Results between two steps: a single odd one is an outlier, not a step."""
MOST_STEPS = 8
PRICE = 3.0
"""Of a step, in variances of the mean of one result times twice the logarithm of the series' length.

benchmarks/series.py measures what it lets pass.
"""
LONGEST_MEMORY = 0.8
"""A lag-1 correlation is taken for at most this: beyond it memory and steps are the same thing."""


@dataclass(frozen=True)
class ChangePoint:
    """A lasting change between one result and the next."""

    index: int
    """The first result after it, from 0."""
    ratio: float
    """The level after it over the level before it, in the series' own unit: seconds above 1 are slower."""


def find_change_points(values: Sequence[float], *, least: float = 0.0) -> tuple[ChangePoint, ...]:
    """The steps of a series, in order; none in fewer than ten results.

    `values`: above zero, in the order of time. `least`: steps that change the level by less, relative, do not matter
    and are not shown. Needs ruptures; raises ImportError without it.
    """
    if len(values) < FEWEST:
        return ()
    logs = _without_outliers([math.log(value) for value in values])
    ends = _best(logs, _candidates(logs))
    levels = [statistics.median(logs[begin:end]) for begin, end in itertools.pairwise([0, *ends])]
    steps = zip(ends[:-1], itertools.pairwise(levels), strict=True)
    return tuple(
        ChangePoint(index=index, ratio=math.exp(after - before))
        for index, (before, after) in steps
        if abs(after - before) > math.log1p(least)
    )


def _without_outliers(logs: Sequence[float]) -> list[float]:
    """The series with what sticks out of its five neighbours brought back to three deviations from them."""
    medians = [statistics.median(logs[max(0, index - 2) : index + 3]) for index in range(len(logs))]
    residuals = [value - median for value, median in zip(logs, medians, strict=True)]
    reach = 3 * 1.4826 * statistics.median(map(abs, residuals)) / 0.8  # the median of five follows the value itself
    return [median + max(-reach, min(reach, residual)) for median, residual in zip(medians, residuals, strict=True)]


def _candidates(logs: Sequence[float]) -> list[list[int]]:
    """The best segments for each number of steps from none on: where each ends."""
    import numpy as np
    import ruptures

    search = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST).fit(np.array(logs).reshape(-1, 1))
    most = min(MOST_STEPS, len(logs) // SHORTEST - 1)
    found: list[list[int]] = [[len(logs)]]
    found += [[int(end) for end in search.predict(n_bkps=number)] for number in range(1, most + 1)]
    return found


def _best(logs: Sequence[float], candidates: list[list[int]]) -> list[int]:
    """Adds a step for as long as it explains more than it costs, the noise being what the next one would leave."""
    chosen = candidates[0]
    for number, more in enumerate(candidates[1:], start=1):
        saved = _squares(logs, chosen) - _squares(logs, more)
        if saved > (number - candidates.index(chosen)) * PRICE * 2 * math.log(len(logs)) * _noise(logs, more):
            chosen = more
    return chosen


def _residuals(logs: Sequence[float], ends: Sequence[int]) -> list[float]:
    segments = [logs[begin:end] for begin, end in itertools.pairwise([0, *ends])]
    return [value - math.fsum(segment) / len(segment) for segment in segments for value in segment]


def _squares(logs: Sequence[float], ends: Sequence[int]) -> float:
    return math.fsum(value**2 for value in _residuals(logs, ends))


def _noise(logs: Sequence[float], ends: Sequence[int]) -> float:
    """The variance that a result adds to the mean of many: what the steps leave, times what its memory makes of it."""
    residuals = _residuals(logs, ends)
    free = len(logs) - len(ends)
    variance = math.fsum(value**2 for value in residuals) / free
    if variance <= 0:
        return 0.0
    products = math.fsum(first * second for first, second in itertools.pairwise(residuals))
    # Taking means away from short segments hides memory: on average this much (Kendall, 1954, for each segment).
    memory = products / (free * variance) + 2 * len(ends) / len(logs)
    memory = min(LONGEST_MEMORY, max(0.0, memory))
    return variance * (1 + memory) / (1 - memory)
