"""An interval as a picture in one line of text: `│` is a speedup of 1, `●` the estimate, `━` the interval.

All rows of a table share one logarithmic axis, so that twice as fast lies as far right as half as fast lies left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from accelbench.report.table import Bounds

MARGIN = 1.02
"""The axis reaches this factor beyond what it shows, so that nothing sits on its edge."""


@dataclass(frozen=True)
class Axis:
    """`width` characters, from `low` to `high` on a logarithmic scale; 1 is always on it."""

    low: float
    high: float
    width: int

    def column(self, value: float) -> int:
        """The character in which `value` falls, from 0."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return min(self.width - 1, max(0, round(share * (self.width - 1))))


def axis(shown: Sequence[Bounds], width: int) -> Axis:
    """An axis that holds every interval and 1."""
    lower = min([1.0, *(bounds.lower for bounds in shown)])
    upper = max([1.0, *(bounds.upper for bounds in shown)])
    return Axis(lower / MARGIN, upper * MARGIN, width)


def draw(bounds: Bounds, on: Axis) -> str:
    """The interval on its axis, `on.width` characters long."""
    line = [" "] * on.width
    line[on.column(1.0)] = "│"
    first, last = on.column(bounds.lower), on.column(bounds.upper)
    line[first : last + 1] = "━" * (last + 1 - first)
    line[on.column(bounds.estimate)] = "●"
    return "".join(line)
