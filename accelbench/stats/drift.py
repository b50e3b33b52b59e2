"""Whether a launch's blocks drift: a warm-up that was too short, a device that heats up, memory that fragments.

Two questions, because either alone misleads. How much: the second half of the blocks against the first, by their
medians; a drift that leaves both halves alike leaves the launch's median alone. And whether it is more than chance: the
blocks of a launch follow each other, and series that are stationary but autocorrelated look like drift to textbook
tests (change points with a textbook penalty were found in a third of them).

`launch_drift` answers for one launch. The series' ranks are taken, so that slow blocks weigh no more than others, then
their first cosine coefficient, which a drift fills, is held against the root mean square of the next six. At low
frequencies the coefficients of any stationary series whose memory is short against its length are independent and of
equal size, so the ratio is Student's t with six degrees of freedom, whatever the autocorrelation (Müller, "HAC
corrections for strongly autocorrelated time series", Journal of Business & Economic Statistics 2014; Lazarus, Lewis,
Stock and Watson, "HAR inference: recommendations for practice", the same, 2018). For independent blocks 3.7 would do,
for a false alarm in a hundred; `LIMIT` is what holds it there until only eight blocks in a series are worth an
independent one (benchmarks/drift.py). A step in the middle of a still series reaches 5.9, a straight line 20.

`common_drift` answers for a variant: its launches are independent of each other, so that whether they drift alike is a
plain t test over launches, and nothing need be assumed of the blocks. It finds a drift far below the blocks' own noise.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.stats.interval import student_quantile

FEWEST_BLOCKS = 10
"""In a launch whose drift is to be told from chance."""
FEWEST_LAUNCHES = 5
"""That drifts are to be common to."""
COEFFICIENTS = 6
LIMIT = 5.0
COMMON_ALPHA = 0.001
"""A variant is looked at after every round, up to some dozens of times: together they stay below one in a hundred."""


@dataclass(frozen=True)
class Drift:
    """How a launch's second half differs from its first."""

    log_change: float
    """Logarithm of the second half's median over the first's: above 0 it became slower."""
    evident: bool | None
    """Whether the series drifts by more than chance; None where it has too few blocks to tell."""


def log_change(values: Sequence[float]) -> float:
    """Logarithm of the second half's median over the first's; the middle block of an odd number is in neither.

    `values`: seconds per unit of at least two blocks, in the order in which they were timed, all above zero.
    """
    half = len(values) // 2
    return math.log(statistics.median(values[-half:])) - math.log(statistics.median(values[:half]))


def trend(values: Sequence[float]) -> float:
    """The first cosine coefficient of the ranks over the root mean square of the next six; 0 where all are equal.

    `values`: at least `FEWEST_BLOCKS`. Above 0: they grow.
    """
    from scipy.fft import dct  # here, so that whoever reads a drift need not load scipy
    from scipy.stats import rankdata

    coefficients = dct(rankdata(values), norm="ortho")[1 : COEFFICIENTS + 2]
    first, others = -float(coefficients[0]), math.sqrt(float((coefficients[1:] ** 2).mean()))
    if others <= 1e-9 * len(values):  # rounding: nothing varies, or nothing but the drift
        return math.copysign(math.inf, first) if abs(first) > 1e-9 * len(values) else 0.0
    return first / others


def launch_drift(values: Sequence[float]) -> Drift | None:
    """The drift of one launch's blocks, in the order in which they were timed; None with fewer than two."""
    if len(values) < 2:  # noqa: PLR2004 - a pair
        return None
    evident = abs(trend(values)) > LIMIT if len(values) >= FEWEST_BLOCKS else None
    return Drift(log_change=log_change(values), evident=evident)


def common_drift(log_changes: Sequence[float]) -> float | None:
    """The mean of the launches' changes, where they agree beyond chance that there is one; else None."""
    count = len(log_changes)
    if count < FEWEST_LAUNCHES:
        return None
    mean = math.fsum(log_changes) / count
    half_width = student_quantile(1 - COMMON_ALPHA / 2, count - 1) * statistics.stdev(log_changes) / math.sqrt(count)
    return mean if abs(mean) > half_width else None
