"""Detect launches that fall into groups: two modes, or a rare launch that is far slower.

Student's interval is wrong for both (with one launch in twenty much slower it covers 75 % instead of 95 %) and cannot
detect them, so the verdict's sentence reports them. The statistic is the widest gap between neighbouring values over
the range of log-seconds: Dixon's ratio with the gap anywhere (Dixon, "Analysis of extreme values", 1950).
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

MINIMUM_LAUNCHES = 5
"""Minimum number of launches in which a gap is looked for."""


@dataclass(frozen=True)
class Gap:
    """Hold a gap in one variant's launches, in seconds per unit."""

    below: float
    """Slowest launch below the gap."""
    above: float
    """Fastest launch above the gap."""
    launches_below: int
    launches_above: int

    def sentence(self, variant: str) -> str:
        """Describe the gap: it separates two groups of launches or, if at most a fifth are on one side, exceptions."""
        total = self.launches_below + self.launches_above
        factor = f"{self.above / self.below:.3g}"
        smaller_group = min(self.launches_below, self.launches_above)
        if smaller_group > total / 5:
            return f"Launches of {variant} come in two groups, {factor} times apart: the interval may be too narrow."
        kind = "slow" if smaller_group == self.launches_above else "quick"
        verb = "was" if smaller_group == 1 else "were"
        return (
            f"{smaller_group} of {total} launches of {variant} {verb} {kind}, by a factor of {factor} "
            f"or more: the interval may be too narrow."
        )


def gap_limit(count: int) -> float:
    """Return the 99th percentile of (widest gap / range) of `count` normally distributed values.

    The formula is fitted to simulated samples of 5 to 50 values.
    """
    return max(1.9 / math.sqrt(count), 0.37)


def find_gap(launch_seconds: Sequence[float], minimum_difference: float) -> Gap | None:
    """Return the widest gap between the sorted durations of launches; None if it is too narrow or may be chance.

    A gap is too narrow if its two sides differ by no more than `minimum_difference`: 0.02 is 2 %.
    """
    if len(launch_seconds) < MINIMUM_LAUNCHES:
        return None
    values = sorted(launch_seconds)
    logarithms = [math.log(value) for value in values]
    widths = [after - before for before, after in itertools.pairwise(logarithms)]
    last_below = widths.index(max(widths))  # index of the last value below the widest gap
    # By chance, one sample in a hundred has a wider gap.
    maximum_by_chance = gap_limit(len(values)) * (logarithms[-1] - logarithms[0])
    if widths[last_below] <= max(math.log1p(minimum_difference), maximum_by_chance):
        return None
    return Gap(
        below=values[last_below],
        above=values[last_below + 1],
        launches_below=last_below + 1,
        launches_above=len(values) - last_below - 1,
    )
