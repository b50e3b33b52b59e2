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
"""Minimum number of values with a standard deviation."""
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
        """Return the estimated ratio of geometric means: the fields hold logarithms."""
        return math.exp(self.log_estimate)

    @property
    def lower(self) -> float:
        """Return the lower end of the interval, as a ratio: the fields hold logarithms."""
        return math.exp(self.log_estimate - self.log_half_width)

    @property
    def upper(self) -> float:
        """Return the upper end of the interval, as a ratio: the fields hold logarithms."""
        return math.exp(self.log_estimate + self.log_half_width)

    @property
    def relative_half_width(self) -> float:
        """Return (upper - lower) / 2 / estimate, which is the hyperbolic sine of the half-width of the logarithm."""
        return math.sinh(self.log_half_width)

    @property
    def inverse(self) -> "Interval":
        """Return the interval of the inverse ratio."""
        return Interval(-self.log_estimate, self.log_half_width, self.pairs)


def log_speedups(baseline: Sequence[float], variant: Sequence[float]) -> list[float]:
    """Return log(speedup of the variant) for each round; both arguments are seconds, one launch per round."""
    pairs = zip(baseline, variant, strict=True)
    return [math.log(baseline_seconds) - math.log(variant_seconds) for baseline_seconds, variant_seconds in pairs]


def student_interval(log_ratios: Sequence[float], alpha: float) -> Interval | None:
    """Return Student's two-sided interval for the mean of `log_ratios`; None with too few values or if too wide.

    If the values are normal, the interval misses the mean with probability `alpha`.
    """
    if len(log_ratios) < MINIMUM_PAIRS:
        return None
    quantile = student_quantile(1 - alpha / 2, len(log_ratios) - 1)
    half_width = quantile * statistics.stdev(log_ratios) / math.sqrt(len(log_ratios))
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(
        log_estimate=math.fsum(log_ratios) / len(log_ratios), log_half_width=half_width, pairs=len(log_ratios)
    )


def welch_interval(before: Sequence[float], after: Sequence[float], alpha: float) -> Interval | None:
    """Return Welch's interval on the speedup of a second run over a first; None with too few values or if too wide.

    `before` and `after` are log-seconds of the two runs, one for each launch or for each result; their variances may
    differ. If the values are normal, the interval misses the speedup with probability `alpha` (Welch, Biometrika 34,
    1947).
    """
    # One of the runs may have a single value: its variance is then taken from the other run.
    if not before or not after or max(len(before), len(after)) < MINIMUM_PAIRS:
        return None
    estimate = statistics.fmean(before) - statistics.fmean(after)
    variance, degrees_of_freedom = _variance_and_degrees(before, after)
    half_width = 0.0
    if variance > 0:
        half_width = student_quantile(1 - alpha / 2, degrees_of_freedom) * math.sqrt(variance)
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(log_estimate=estimate, log_half_width=half_width, pairs=min(len(before), len(after)))


def _variance_and_degrees(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Return the variance of the difference of the samples' means, and the degrees of freedom of this variance.

    The formula is by Satterthwaite, "An approximate distribution of estimates of variance components" (1946).
    """
    samples = (before, after)
    if min(map(len, samples)) < MINIMUM_PAIRS:
        # A sample with a single value has no variance: use the variance of the other sample for both.
        larger = max(samples, key=len)
        return statistics.variance(larger) * (1 + 1 / len(larger)), len(larger) - 1
    variances_of_means = [statistics.variance(sample) / len(sample) for sample in samples]
    variance = math.fsum(variances_of_means)
    if variance <= 0:
        return 0.0, math.inf
    terms = [
        (variance_of_mean / variance) ** 2 / (len(sample) - 1)
        for sample, variance_of_mean in zip(samples, variances_of_means, strict=True)
    ]
    return variance, 1 / math.fsum(terms)


def student_quantile(probability: float, degrees_of_freedom: float) -> float:
    """Return the quantile of Student's t distribution at this probability."""
    from scipy.special import stdtrit  # imported here, as most importers of this module do not need scipy

    return float(stdtrit(degrees_of_freedom, probability))
