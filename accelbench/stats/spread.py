"""Describe the spread of times: outliers by Tukey's fences, and the share of variance between launches.

Outliers are counted and kept. A slow block is part of a launch's time, and dropping slow blocks would bias the result;
their number shows how quiet the machine was.
"""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

MINIMUM_VALUES = 5
"""Minimum number of values: with fewer, quartiles are values themselves, and every spread looks like an outlier."""
MINIMUM_LAUNCHES = 2
MILD, SEVERE = 1.5, 3.0
"""Distance of Tukey's fences from the quartiles, in interquartile ranges."""


@dataclass(frozen=True)
class Outliers:
    """Count the values beyond the inner fences (mild) and beyond the outer fences (severe), among `of` values."""

    of: int = 0
    low_severe: int = 0
    low_mild: int = 0
    high_mild: int = 0
    high_severe: int = 0

    @property
    def count(self) -> int:
        """Return the number of all outliers."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe


def find_outliers(values: Sequence[float]) -> Outliers:
    """Count outliers by Tukey's fences ("Exploratory Data Analysis", 1977); none with fewer than five values.

    Of normal values about 7 in 1,000 lie beyond the inner fences, and 2 in a million beyond the outer ones.
    """
    if len(values) < MINIMUM_VALUES:
        return Outliers(of=len(values))
    lower_quartile, _, upper_quartile = statistics.quantiles(values, n=4, method="inclusive")
    spread = upper_quartile - lower_quartile
    mild, severe = MILD * spread, SEVERE * spread
    return Outliers(
        of=len(values),
        low_severe=sum(value < lower_quartile - severe for value in values),
        low_mild=sum(lower_quartile - severe <= value < lower_quartile - mild for value in values),
        high_mild=sum(upper_quartile + mild < value <= upper_quartile + severe for value in values),
        high_severe=sum(value > upper_quartile + severe for value in values),
    )


def total(counts: Iterable[Outliers]) -> Outliers:
    """Add the outlier counts of several samples, each counted by its own fences."""
    samples = tuple(counts)
    return Outliers(
        of=sum(sample.of for sample in samples),
        low_severe=sum(sample.low_severe for sample in samples),
        low_mild=sum(sample.low_mild for sample in samples),
        high_mild=sum(sample.high_mild for sample in samples),
        high_severe=sum(sample.high_severe for sample in samples),
    )


def between_launch_share(launches: Sequence[Sequence[float]]) -> float | None:
    """Return the share of a block's variance that is between launches, from 0 to 1, or None.

    It shows which measuring would help: if launches differ, only more launches do (Kalibera and Jones, "Rigorous
    benchmarking in reasonable time", ISMM 2013). The variance is that of the logarithms of seconds per unit, estimated
    by analysis of variance for unequal numbers of blocks (Searle, Casella and McCulloch, "Variance Components", 1992,
    section 3.6); the share is 0 if launches differ less than their blocks would make them. Correlated blocks inflate
    it.

    Args:
        launches: The blocks of each launch, in seconds per unit, all positive.

    Returns:
        None with fewer than two launches, if every launch has one block, or if nothing varies.
    """
    logs = [[math.log(value) for value in blocks] for blocks in launches if blocks]
    count, total = len(logs), sum(map(len, logs))
    if count < MINIMUM_LAUNCHES or total <= count:
        return None
    means = [math.fsum(blocks) / len(blocks) for blocks in logs]
    grand = math.fsum(math.fsum(blocks) for blocks in logs) / total
    within = math.fsum((value - mean) ** 2 for blocks, mean in zip(logs, means, strict=True) for value in blocks)
    between = math.fsum(len(blocks) * (mean - grand) ** 2 for blocks, mean in zip(logs, means, strict=True))
    within_square, between_square = within / (total - count), between / (count - 1)
    blocks_each = (total - sum(len(blocks) ** 2 for blocks in logs) / total) / (count - 1)
    launch = max(0.0, (between_square - within_square) / blocks_each)
    return launch / (launch + within_square) if launch + within_square > 0 else None
