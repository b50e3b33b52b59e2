"""How an interval is computed from samples that share no rounds: Welch's, on logarithms.

Two runs share no rounds, so nothing pairs their launches, and their spreads may differ: one run may have been on a
quieter night. Welch's interval (B. L. Welch, "The generalization of 'Student's' problem when several different
population variances are involved", Biometrika 34, 1947) takes each side's own variance, with Satterthwaite's degrees of
freedom. Of a side that has a single number its variance is unknown, so there the other's stands for both (Student's
two-sample interval).
"""

import math
import statistics
from collections.abc import Sequence

from accelbench.stats.interval import MINIMUM_PAIRS, WIDEST_LOG_HALF_WIDTH, Interval, student_quantile


def welch_interval(before: Sequence[float], after: Sequence[float], alpha: float) -> Interval | None:
    """The interval on the ratio before over after, from logarithms of seconds: above 1 what came after is faster.

    It misses the ratio of geometric means with probability `alpha`, if both are normal. None where there is nothing to
    say: an empty side, one number on each side, or a half-width beyond `WIDEST_LOG_HALF_WIDTH`.
    """
    if not before or not after or max(len(before), len(after)) < MINIMUM_PAIRS:
        return None
    estimate = statistics.fmean(before) - statistics.fmean(after)
    squares, degrees = _error(before, after)
    # Without any spread there is nothing to divide by, nor to multiply.
    half_width = student_quantile(1 - alpha / 2, degrees) * math.sqrt(squares) if squares > 0 else 0.0
    if half_width > WIDEST_LOG_HALF_WIDTH:
        return None
    return Interval(log_estimate=estimate, log_half_width=half_width, pairs=min(len(before), len(after)))


def _error(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """The variance of the difference of means, and its degrees of freedom."""
    sides = (before, after)
    if min(map(len, sides)) < MINIMUM_PAIRS:
        known = max(sides, key=len)
        return statistics.variance(known) * (1 + 1 / len(known)), len(known) - 1
    parts = [(statistics.variance(side) / len(side), len(side) - 1) for side in sides]
    squares = math.fsum(part for part, _ in parts)
    if squares <= 0:
        return 0.0, math.inf
    return squares, 1 / math.fsum((part / squares) ** 2 / free for part, free in parts)
