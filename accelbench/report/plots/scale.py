"""Choose round ticks for linear and logarithmic axes, as many as there is room for. Pure."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DIGITS_OF_TICKS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 1.2, 1.4, 1.7, 2, 2.5, 3, 4, 5, 6, 8))
"""Factors by which a power of ten is multiplied for the ticks up to the next power, from few ticks to many."""
_MINIMUM_LOG_RATIO = 1.6
"""Minimum ratio of the ends of a logarithmic axis; below it ticks are evenly spaced."""


def log_ticks(low: float, high: float, maximum: int) -> list[float]:
    """Return at most `maximum` round numbers from `low` to `high` as ticks of a logarithmic axis."""
    if high / low < _MINIMUM_LOG_RATIO:
        return _even_ticks(low, high, maximum)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    best_ticks: list[float] = []
    # Increase the number of ticks for each power of ten as long as there are not too many.
    for digits in _DIGITS_OF_TICKS:
        candidates = [digit * 10.0**power for power in powers for digit in digits]
        ticks = [tick for tick in candidates if low <= tick <= high]
        if len(ticks) > maximum:
            break
        best_ticks = ticks
    if best_ticks:
        return best_ticks
    # Even the powers of ten are too many: take every second one, or every third, and so on.
    powers_of_ten = [10.0**power for power in powers if low <= 10.0**power <= high]
    return powers_of_ten[:: math.ceil(len(powers_of_ten) / maximum)]


def linear_ticks(high: float, maximum: int) -> list[float]:
    """Return 0 and at most `maximum` other round numbers up to `high` as ticks of a linear axis."""
    just_above_zero = high * 1e-9  # begin above 0, because 0 would count as one of the `maximum` numbers
    return [0.0, *_even_ticks(just_above_zero, high, maximum)]


def _even_ticks(low: float, high: float, maximum: int) -> list[float]:
    """Return at most `maximum` evenly spaced round numbers from `low` to `high`."""
    # Use the smallest step that gives few enough ticks: 1, 2 or 5 times 10**power, or 10 times as much.
    power = math.floor(math.log10((high - low) / maximum))
    for exponent in (power, power + 1):
        for digit in (1, 2, 5):
            step = digit * 10.0**exponent
            multiples = range(math.ceil(low / step), math.floor(high / step) + 1)
            if len(multiples) <= maximum:
                # Remove the rounding errors of the multiplication: keep 12 digits after the step's first digit.
                return [round(multiple * step, 12 - exponent) for multiple in multiples]
    return []  # not reached: the largest step has at most `maximum` multiples


def format_ratio(value: float) -> str:
    """Format a ratio as `1,000x`."""
    return f"{value:,.10g}x"


def set_ticks(axes: "Axes", ticks: Sequence[float], format_tick: Callable[[float], str], *, which: str = "x") -> None:
    """Set the ticks of the axis `which` (x or y) and their labels, and remove its minor ticks."""
    from matplotlib.ticker import NullLocator

    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_minor_locator(NullLocator())
    axis.set_ticks(list(ticks), labels=[format_tick(tick) for tick in ticks])
