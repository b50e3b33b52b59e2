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
        """Return the number of outliers of all four kinds."""
        return self.low_severe + self.low_mild + self.high_mild + self.high_severe


def find_outliers(values: Sequence[float]) -> Outliers:
    """Count mild and severe outliers by Tukey's fences. Of 1,000 normally distributed values, about 7 are outliers."""
    if len(values) < MINIMUM_VALUES:
        return Outliers(of=len(values))
    lower_quartile, _, upper_quartile = statistics.quantiles(values, n=4, method="inclusive")
    interquartile_range = upper_quartile - lower_quartile
    mild, severe = MILD * interquartile_range, SEVERE * interquartile_range
    return Outliers(
        of=len(values),
        low_severe=sum(value < lower_quartile - severe for value in values),
        low_mild=sum(lower_quartile - severe <= value < lower_quartile - mild for value in values),
        high_mild=sum(upper_quartile + mild < value <= upper_quartile + severe for value in values),
        high_severe=sum(value > upper_quartile + severe for value in values),
    )


def total(counts: Iterable[Outliers]) -> Outliers:
    """Add the outlier counts of several samples."""
    samples = tuple(counts)
    return Outliers(
        of=sum(sample.of for sample in samples),
        low_severe=sum(sample.low_severe for sample in samples),
        low_mild=sum(sample.low_mild for sample in samples),
        high_mild=sum(sample.high_mild for sample in samples),
        high_severe=sum(sample.high_severe for sample in samples),
    )


def between_launch_share(launches: Sequence[Sequence[float]]) -> float | None:
    """Return the share of the variance of block times that is due to differences between launches.

    It is None with too few launches or blocks, or if all times are equal. `launches` has the seconds per unit of each
    launch's blocks. The variances are of logarithms, from an analysis of variance with launches as random effects.
    """
    logarithms = [[math.log(value) for value in blocks] for blocks in launches if blocks]
    launch_count, block_count = len(logarithms), sum(map(len, logarithms))
    if launch_count < MINIMUM_LAUNCHES or block_count <= launch_count:
        return None
    grand_mean = math.fsum(math.fsum(blocks) for blocks in logarithms) / block_count
    means = [math.fsum(blocks) / len(blocks) for blocks in logarithms]
    launches_with_means = list(zip(logarithms, means, strict=True))
    squares_within = math.fsum((value - mean) ** 2 for blocks, mean in launches_with_means for value in blocks)
    squares_between = math.fsum(len(blocks) * (mean - grand_mean) ** 2 for blocks, mean in launches_with_means)
    # Launches may have unequal numbers of blocks, of which `blocks_per_launch` is a kind of mean: Searle, Casella and
    # McCulloch, "Variance Components", 1992, section 3.6.
    block_variance = squares_within / (block_count - launch_count)
    between_mean_square = squares_between / (launch_count - 1)
    sum_of_squared_counts = sum(len(blocks) ** 2 for blocks in logarithms)
    blocks_per_launch = (block_count - sum_of_squared_counts / block_count) / (launch_count - 1)
    launch_variance = max(0.0, (between_mean_square - block_variance) / blocks_per_launch)
    variance = launch_variance + block_variance
    return launch_variance / variance if variance > 0 else None
