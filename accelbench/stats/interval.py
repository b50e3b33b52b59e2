"""How the interval is computed: Student's t on the rounds' log-speedups.

A round gives one pair of launches and so one number, log(baseline seconds) - log(variant seconds): what slows the whole
machine for a while hits both sides and cancels. The estimand is the ratio of the geometric means over launches,
baseline over variant: above 1 the variant is faster. Logarithms make it symmetric, so that swapping the sides inverts
the interval exactly.

Sources: Student (1908) for the interval; Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013) for
the launch as the unit of randomness.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_PAIRS = 2
WIDEST_LOG_HALF_WIDTH = math.log(1000)
"""An interval wider than this factor either way says nothing; two rounds at a small alpha give such ones."""


@dataclass(frozen=True)
class Interval:
    """An interval on a ratio, kept as logarithms; `pairs` numbers went into it."""

    log_estimate: float
    log_half_width: float
    pairs: int

    @property
    def estimate(self) -> float:
        """The ratio of geometric means."""
        return math.exp(self.log_estimate)

    @property
    def lower(self) -> float:
        """The interval's lower end."""
        return math.exp(self.log_estimate - self.log_half_width)

    @property
    def upper(self) -> float:
        """The interval's upper end."""
        return math.exp(self.log_estimate + self.log_half_width)

    @property
    def relative_half_width(self) -> float:
        """Half of (upper - lower), as a share of the estimate."""
        return math.sinh(self.log_half_width)

    @property
    def inverse(self) -> "Interval":
        """The interval with the sides swapped."""
        return Interval(-self.log_estimate, self.log_half_width, self.pairs)


def log_speedups(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """One log-speedup a round from the seconds of its two launches, in the same order, all above zero."""
    return [math.log(before) - math.log(after) for before, after in zip(baseline, variant, strict=True)]


def student_interval(logs: Sequence[float], alpha: float) -> Interval | None:
    """The two-sided interval that misses the mean of `logs` with probability `alpha`, if they are normal.

    None where there is nothing to say: fewer than two numbers, or a half-width beyond `WIDEST_LOG_HALF_WIDTH`.
    """
    if len(logs) < MINIMUM_PAIRS:
        return None
    quantile = student_quantile(1 - alpha / 2, len(logs) - 1)
    half_width = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(log_estimate=math.fsum(logs) / len(logs), log_half_width=half_width, pairs=len(logs))


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """The quantile of Student's t distribution."""
    from scipy.special import stdtrit  # here, so that whoever reads an interval need not load scipy

    return float(stdtrit(degrees_of_freedom, probability))
