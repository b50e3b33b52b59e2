"""Detect whether a launch's blocks drift, because of a short warm-up, a device that heats up or memory that fragments.

Two numbers are needed, because each alone misleads. The size of a drift is the median of the second half of the blocks
over that of the first half. A test decides whether the drift is more than chance: consecutive blocks are correlated,
and textbook tests mistake a stationary series with autocorrelation for a drift (change points with a textbook penalty
appear in a third of such series).

`launch_drift` tests one launch. It ranks the series, so that slow blocks weigh no more than others, and compares
the first cosine coefficient of the ranks, which a drift makes large, with the root mean square of the next six. At low
frequencies the coefficients of a stationary series with short memory are independent and of equal size, so the ratio
follows Student's t with six degrees of freedom, whatever the autocorrelation (Müller, "HAC corrections for strongly
autocorrelated time series", Journal of Business & Economic Statistics 2014; Lazarus, Lewis, Stock and Watson, "HAR
inference: recommendations for practice", the same, 2018). For independent blocks a limit of 3.7 gives 1 % false alarms;
with `LIMIT` there are no more, down to an effective sample size of eight (benchmarks/drift.py). A step in the middle of
a noiseless series reaches 5.9, a straight line 20.

`common_drift` tests a variant. Launches are independent, so a plain t test over launches decides whether they
drift alike, without assumptions about the blocks. It detects a drift far below the blocks' own noise.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.stats.interval import student_quantile

MINIMUM_BLOCKS = 10
"""Minimum number of blocks of a launch whose drift is tested."""
MINIMUM_LAUNCHES = 5
"""Minimum number of launches for a common drift."""
COEFFICIENTS = 6
"""Number of coefficients that the first one is compared with."""
LIMIT = 5.0
"""Maximum of `trend`'s absolute value for a series without drift."""
COMMON_ALPHA = 0.001
"""Error probability of one test. A variant is tested after every round: dozens of tests together stay below 1 %."""


@dataclass(frozen=True)
class Drift:
    """Hold how a launch's second half differs from its first."""

    log_change: float
    """Logarithm of the second half's median over the first's; above 0 the second half is slower."""
    evident: bool | None
    """True if the series drifts by more than chance; None if it has too few blocks."""


def log_change(values: Sequence[float]) -> float:
    """Return log(median of the second half / median of the first half).

    `values` are seconds per unit in order of time.
    """
    half = len(values) // 2  # a middle block is in neither half
    return math.log(statistics.median(values[-half:])) - math.log(statistics.median(values[:half]))


def trend(values: Sequence[float]) -> float:
    """Return how strongly the values grow (above 0) or fall (below 0), relative to their slow fluctuations.

    That is the first coefficient of the cosine transform of their ranks, divided by the root mean square of the next
    six; it is infinite if only these six are 0, and 0 if all are.
    """
    from scipy.fft import dct  # imported here, as most importers of this module do not need scipy
    from scipy.stats import rankdata

    # Coefficient 0 is left out, because it is only the mean of the ranks.
    coefficients = dct(rankdata(values), norm="ortho")[1 : COEFFICIENTS + 2]
    first = -float(coefficients[0])  # the first cosine falls, so that growing values have a negative coefficient
    next_rms = math.sqrt(float((coefficients[1:] ** 2).mean()))
    rounding_error = 1e-9 * len(values)
    if next_rms > rounding_error:
        return first / next_rms
    if abs(first) > rounding_error:
        return math.copysign(math.inf, first)
    return 0.0


def launch_drift(values: Sequence[float]) -> Drift | None:
    """Return the drift of one launch; None if it has fewer than two values.

    `values` are the seconds per unit of work of the launch's blocks, in order of time.
    """
    if len(values) < 2:  # noqa: PLR2004 - a half needs a block
        return None
    evident = None
    if len(values) >= MINIMUM_BLOCKS:
        evident = abs(trend(values)) > LIMIT
    return Drift(log_change=log_change(values), evident=evident)


def common_drift(log_changes: Sequence[float]) -> float | None:
    """Return the mean of `log_changes`, one for each launch, if it differs significantly from 0; else None."""
    count = len(log_changes)
    if count < MINIMUM_LAUNCHES:
        return None
    mean = math.fsum(log_changes) / count
    half_width = student_quantile(1 - COMMON_ALPHA / 2, count - 1) * statistics.stdev(log_changes) / math.sqrt(count)
    return mean if abs(mean) > half_width else None
