"""Compute intervals on a ratio of times: Student's for paired launches, Welch's for separate runs.

A round gives one pair of launches and so one number, log(baseline seconds) - log(variant seconds): what slows the whole
machine for a while affects both sides and cancels. The estimand is the ratio of the geometric means over launches,
baseline over variant: above 1 the variant is faster. Logarithms make it symmetric, so swapping the sides inverts the
interval exactly.

Sources: Student (1908) for the interval; Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013) for
the launch as the unit of randomness.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_PAIRS = 2
WIDEST_LOG_HALF_WIDTH = math.log(1000)
"""Maximum half-width that is reported; two rounds at a small alpha give wider intervals, which are useless."""


@dataclass(frozen=True)
class Interval:
    """Hold an interval on a ratio, as logarithms."""

    log_estimate: float
    log_half_width: float
    pairs: int
    """Number of paired launches; for two separate runs, the launches of the run that has fewer."""

    @property
    def estimate(self) -> float:
        """Return the ratio of geometric means."""
        return math.exp(self.log_estimate)

    @property
    def lower(self) -> float:
        """Return the lower end."""
        return math.exp(self.log_estimate - self.log_half_width)

    @property
    def upper(self) -> float:
        """Return the upper end."""
        return math.exp(self.log_estimate + self.log_half_width)

    @property
    def relative_half_width(self) -> float:
        """Return half of (upper - lower), as a share of the estimate."""
        return math.sinh(self.log_half_width)

    @property
    def inverse(self) -> "Interval":
        """Return the interval with the sides swapped."""
        return Interval(-self.log_estimate, self.log_half_width, self.pairs)


def log_speedups(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return one log-speedup per round, from the seconds of its two launches in the same order, all positive."""
    return [math.log(before) - math.log(after) for before, after in zip(baseline, variant, strict=True)]


def student_interval(logs: Sequence[float], alpha: float) -> Interval | None:
    """Return the two-sided interval that misses the mean of `logs` with probability `alpha`, if normal.

    None with fewer than two numbers, or if the half-width exceeds `WIDEST_LOG_HALF_WIDTH`.
    """
    if len(logs) < MINIMUM_PAIRS:
        return None
    quantile = student_quantile(1 - alpha / 2, len(logs) - 1)
    half_width = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(log_estimate=math.fsum(logs) / len(logs), log_half_width=half_width, pairs=len(logs))


def welch_interval(before: Sequence[float], after: Sequence[float], alpha: float) -> Interval | None:
    """Return the interval on the ratio before over after of two separate runs.

    Two runs share no rounds, so their launches are not paired, and their spreads may differ. Welch's interval (B. L.
    Welch, "The generalization of 'Student's' problem when several different population variances are involved",
    Biometrika 34, 1947) takes each side's own variance, with Satterthwaite's degrees of freedom. If one side has a
    single number, the other side's variance stands for both (Student's two-sample interval).

    Args:
        before: Logarithms of the first run's seconds, one for each launch.
        after: The same of the second run.
        alpha: Probability that the interval misses the ratio of geometric means, if both are normal.

    Returns:
        The interval, above 1 if the second run is faster. None if a side is empty, if both have one number, or if the
        half-width exceeds `WIDEST_LOG_HALF_WIDTH`.
    """
    if not before or not after or max(len(before), len(after)) < MINIMUM_PAIRS:
        return None
    estimate = statistics.fmean(before) - statistics.fmean(after)
    squares, degrees = _variance_and_degrees(before, after)
    # Without any spread the degrees of freedom are infinite, for which the quantile is not defined here.
    half_width = student_quantile(1 - alpha / 2, degrees) * math.sqrt(squares) if squares > 0 else 0.0
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(log_estimate=estimate, log_half_width=half_width, pairs=min(len(before), len(after)))


def _variance_and_degrees(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the variance of the difference of means and its degrees of freedom."""
    sides = (before, after)
    if min(map(len, sides)) < MINIMUM_PAIRS:
        known = max(sides, key=len)
        return statistics.variance(known) * (1 + 1 / len(known)), len(known) - 1
    parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in sides]
    squares = math.fsum(part for part, _ in parts)
    if squares <= 0:
        return 0.0, math.inf
    return squares, 1 / math.fsum((part / squares) ** 2 / free for part, free in parts)


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the value below which Student's t is with this probability."""
    from scipy.special import stdtrit  # imported here, as most importers of this module do not need scipy

    return float(stdtrit(degrees_of_freedom, probability))
