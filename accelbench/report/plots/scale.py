"""Choose round ticks for linear and logarithmic axes, as many as there is room for. Pure."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DECADE = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 5, 6, 8))
_LINEAR_BELOW = 1.6
"""Factor below which the ticks of a logarithmic axis are evenly spaced."""


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` round numbers between `low` and `high`, at least one if there is any."""
    if high / low < _LINEAR_BELOW:
        return _even_ticks(low, high, most)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    best: list[float] = []
    for digits in _DECADE:
        ticks = [digit * 10.0**power for power in range(first, last + 1) for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) > most:
            break
        best = ticks
    if best:
        return best
    powers = [10.0**power for power in range(first, last + 1) if low <= 10.0**power <= high]
    return powers[:: math.ceil(len(powers) / most)]


def linear_ticks(high: float, most: int) -> list[float]:
    """Return 0 and at most `most` round numbers up to `high`."""
    return [0.0, *_even_ticks(high * 1e-9, high, most)]


def _even_ticks(low: float, high: float, most: int) -> list[float]:
    """Return at most `most` multiples of 1, 2 or 5 times a power of ten, between `low` and `high`."""
    power = math.floor(math.log10((high - low) / most))
    for exponent in (power, power + 1):
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            ticks = range(math.ceil(low / step), math.floor(high / step) + 1)
            if len(ticks) <= most:
                return [round(tick * step, 12 - exponent) for tick in ticks]
    return []


def set_ticks(axes: "Axes", ticks: Sequence[float], label: Callable[[float], str], *, which: str = "x") -> None:
    """Set the ticks of an axis and remove minor ticks."""
    from matplotlib.ticker import NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(list(ticks), labels=[label(tick) for tick in ticks])
