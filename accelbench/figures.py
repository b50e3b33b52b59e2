"""Format numbers for people: three or four significant digits, a fitting unit, and no exponent."""

import math
from collections.abc import Callable, Iterable, Sequence

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_UNITS = {name: scale for scale, name in _TIMES}
_THOUSANDS = ("", "k", "M", "G", "T", "P", "E")
_DIGITS = (3, 4, 5, 6, 7)
_ROUNDING = 0.505
"""Half of the last digit shown, plus 1 % for the digits that a result does not store."""
_MINUTE = 60
_HOUR = 3600


def significant(value: float, digits: int = 3) -> str:
    """Format `value` with `digits` significant digits; keep trailing zeros and whole numbers."""
    if value == 0:
        return "0"
    rounded = round(value, _decimals(value, digits))
    # Rounding may add a digit: with three digits 9.996 is 10.0, not 10.00.
    return f"{rounded:,.{_decimals(rounded, digits)}f}"


def _decimals(value: float, digits: int) -> int:
    """Return the decimal places that show `value` with `digits` significant digits."""
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def seconds(value: float, digits: int = _DIGITS[0]) -> str:
    """Format a measured time: `117 ms`, `8.31 µs`, `14.1 s`."""
    for scale, unit in _TIMES:
        # 0.9995 s is 1.00 s, not 1,000 ms.
        if abs(value) >= scale * 0.9995:
            return f"{significant(value / scale, digits)} {unit}"
    return f"{significant(value / 1e-9, digits)} ns"


def digits_that_agree(
    quotients: Iterable[tuple[float, float, float]], show: Callable[[float, int], str] = seconds
) -> int:
    """Return the fewest digits, 3 to 7, with which the ratios of the shown times are the shown speedups.

    Args:
        quotients: Dividend, divisor and their ratio, for each speedup.
        show: Formats a time with a number of digits.

    Returns:
        3 also if even seven digits are not enough.
    """
    all_quotients = tuple(quotients)
    return next(
        (digits for digits in _DIGITS if all(_agree(*quotient, digits, show) for quotient in all_quotients)), _DIGITS[0]
    )


def _agree(dividend: float, divisor: float, ratio: float, digits: int, show: Callable[[float, int], str]) -> bool:
    """Return True if the ratio of the two shown times is the shown ratio, to about half of its last digit."""
    shown_ratio = speedup(ratio)
    last_digit = 10.0 ** -len(shown_ratio.removesuffix("x").partition(".")[2])
    shown_quotient = read(show(dividend, digits)) / read(show(divisor, digits))
    return abs(shown_quotient - read(shown_ratio)) <= _ROUNDING * last_digit


def read(text: str) -> float:
    """Parse a formatted time, in seconds, or a formatted ratio."""
    number, _, unit = text.removesuffix("x").partition(" ")
    return float(number.replace(",", "")) * _UNITS.get(unit, 1.0)


def duration(value: float) -> str:
    """Format a wait, to the second: `45 s`, `2 min 05 s`, `1 h 10 min`."""
    whole = max(0, round(value))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min {whole % _MINUTE:02} s"
    return f"{whole // _HOUR} h {whole % _HOUR // _MINUTE:02} min"


def speedup(value: float, digits: int = _DIGITS[0]) -> str:
    """Format a ratio: `2.04x`, `0.973x`, `26.1x`; with three decimals near 1."""
    if 0.9 <= value < 1.1:  # noqa: PLR2004 - near 1
        return f"{value:.{max(3, digits - 1)}f}x"
    return f"{significant(value, digits)}x"


def interval(lower: float, upper: float) -> str:
    """Format an interval on a ratio: `2.01 to 2.07`."""
    return f"{speedup(lower).removesuffix('x')} to {speedup(upper).removesuffix('x')}"


def prose(value: float) -> str:
    """Format a ratio for a sentence, rounded to three significant digits."""
    return significant(float(f"{value:.3g}"))  # 1,234 has four


def percent(ratio: float) -> str:
    """Format a share or a relative deviation: `0.4 %`, `12 %`."""
    value = ratio * 100
    return f"{value:.1f} %" if abs(value) < 10 else f"{value:,.0f} %"  # noqa: PLR2004 - two digits


def spread(ratio: float) -> str:
    """Format half a range as a share of the time: `± 0.4 %`; above 100 % without the sign, as times are positive."""
    return f"± {percent(ratio)}" if ratio <= 1 else "> 100 %"


def quantity(value: float, unit: str) -> str:
    """Format a quantity with a metric prefix: `4.56 TFLOP/s`, `312 MB`."""
    power = 0
    while abs(value) >= 999.5 and power < len(_THOUSANDS) - 1:  # noqa: PLR2004 - rounds to 1,000
        value /= 1000
        power += 1
    return f"{significant(value)} {_THOUSANDS[power]}{unit}"


def listed(names: Sequence[str]) -> str:
    """Join names with commas and a final `and`: `a`, `a and b`, `a, b and c`."""
    *others, last = names or ("",)
    return f"{', '.join(others)} and {last}" if others else last


def between(lower: float, upper: float) -> str:
    """Format two ends for a sentence: `between 0.891 and 2.08`, or one number if they look the same."""
    ends = prose(lower), prose(upper)
    return ends[0] if ends[0] == ends[1] else f"between {ends[0]} and {ends[1]}"


def count(value: int, unit: str = "") -> str:
    """Format a number of things with three digits: `1,240 steps`, `1 step`."""
    rounded = round(value, -max(0, len(str(value)) - 3))
    return f"{rounded:,}{f' {unit}' if unit else ''}{'s' if unit and rounded != 1 else ''}"
