"""Numbers as people read them: three or four significant digits, a unit that fits, and never an exponent."""

import math
from collections.abc import Callable, Iterable, Sequence

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_UNITS = {name: scale for scale, name in _TIMES}
_THOUSANDS = ("", "k", "M", "G", "T", "P", "E")
_DIGITS = (3, 4, 5, 6, 7)
_ROUNDING = 0.505
"""Half of the last digit shown, and a hundredth more for the digits that a result does not store."""
_MINUTE = 60
_HOUR = 3600


def significant(value: float, digits: int = 3) -> str:
    """`value` with `digits` significant digits, trailing zeros kept, whole numbers left whole."""
    if value == 0:
        return "0"
    rounded = round(value, _places(value, digits))
    # Rounding may have carried: 9.996 is 10.0 with three digits, not 10.00.
    return f"{rounded:,.{_places(rounded, digits)}f}"


def _places(value: float, digits: int) -> int:
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def seconds(value: float, digits: int = _DIGITS[0]) -> str:
    """A measured time: `117 ms`, `8.31 µs`, `14.1 s`."""
    for scale, unit in _TIMES:
        # 0.9995 s is 1.00 s, not 1,000 ms.
        if abs(value) >= scale * 0.9995:
            return f"{significant(value / scale, digits)} {unit}"
    return f"{significant(value / 1e-9, digits)} ns"


def digits_that_agree(
    divided: Iterable[tuple[float, float, float]], show: Callable[[float, int], str] = seconds
) -> int:
    """How many digits numbers need so that whoever divides those shown gets the ratio shown, to its last digit.

    Each of `divided` is a dividend, a divisor and their ratio. Three digits, unless their rounding is in the way.
    """
    pairs = tuple(divided)
    return next((digits for digits in _DIGITS if all(_agree(*pair, digits, show) for pair in pairs)), _DIGITS[0])


def _agree(dividend: float, divisor: float, ratio: float, digits: int, show: Callable[[float, int], str]) -> bool:
    said = speedup(ratio)
    last = 10.0 ** -len(said.removesuffix("x").partition(".")[2])
    return abs(read(show(dividend, digits)) / read(show(divisor, digits)) - read(said)) <= _ROUNDING * last


def read(text: str) -> float:
    """What a shown time or ratio says, in seconds or by itself."""
    number, _, unit = text.removesuffix("x").partition(" ")
    return float(number.replace(",", "")) * _UNITS.get(unit, 1.0)


def duration(value: float) -> str:
    """A wait, to the second: `45 s`, `2 min 05 s`, `1 h 10 min`."""
    whole = max(0, round(value))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"


def speedup(value: float, digits: int = _DIGITS[0]) -> str:
    """A ratio: `2.04x`, `0.973x`, `26.1x`; three decimals near 1, where the third decides."""
    if 0.9 <= value < 1.1:  # noqa: PLR2004 - near 1
        return f"{value:.{max(3, digits - 1)}f}x"
    return f"{significant(value, digits)}x"


def interval(lower: float, upper: float) -> str:
    """An interval on a ratio: `2.01 to 2.07`."""
    return f"{speedup(lower).removesuffix('x')} to {speedup(upper).removesuffix('x')}"


def prose(value: float) -> str:
    """A ratio in a sentence: three significant digits, and no more."""
    return significant(float(f"{value:.3g}"))  # 1,234 has four


def percent(ratio: float) -> str:
    """A share or a relative deviation: `0.4 %`, `12 %`."""
    value = ratio * 100
    return f"{value:.1f} %" if abs(value) < 10 else f"{value:,.0f} %"  # noqa: PLR2004 - two digits


def spread(ratio: float) -> str:
    """Half a range as a share of the time: `± 0.4 %`; beyond the time itself no sign fits, as no time is negative."""
    return f"± {percent(ratio)}" if ratio <= 1 else "> 100 %"


def quantity(value: float, unit: str) -> str:
    """A quantity with a metric prefix: `4.56 TFLOP/s`, `312 MB`."""
    size = 0
    while abs(value) >= 999.5 and size < len(_THOUSANDS) - 1:  # noqa: PLR2004 - rounds to 1,000
        value /= 1000
        size += 1
    return f"{significant(value)} {_THOUSANDS[size]}{unit}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *others, last = names or ("",)
    return f"{', '.join(others)} and {last}" if others else last


def between(lower: float, upper: float) -> str:
    """Two ends with the digits that prose has: `between 0.891 and 2.08`, or one number where these do not differ."""
    ends = prose(lower), prose(upper)
    return ends[0] if ends[0] == ends[1] else f"between {ends[0]} and {ends[1]}"


def count(value: int, unit: str = "") -> str:
    """A number of things with three digits, for no more are known: `1,240 steps`, `1 step`."""
    rounded = round(value, -max(0, len(str(value)) - 3))
    return f"{rounded:,}{f' {unit}' if unit else ''}{'s' if unit and rounded != 1 else ''}"
