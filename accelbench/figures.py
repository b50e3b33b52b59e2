"""Format numbers for readers: three or four significant digits, a suitable unit, and no exponent."""

import math
from collections.abc import Callable, Iterable, Sequence

_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
"""Units of time with their seconds, longest first."""
_UNITS = {name: scale for scale, name in _TIMES}
_PREFIXES = ("", "k", "M", "G", "T", "P", "E")
_DIGITS = (3, 4, 5, 6, 7)
"""Numbers of significant digits that `digits_that_agree` tries; the first is the default of `seconds` and `speedup`."""
_TOLERANCE = 0.505
"""Maximum difference of two equal ratios, in units of the last digit shown.

It is half of that digit, plus 1 % because a result stores rounded values.
"""
_MINUTE = 60
_HOUR = 3600


def significant(value: float, digits: int = 3) -> str:
    """Format `value` with `digits` significant digits, including zeros at the end: `2.00`.

    A longer integer part keeps all digits: `1,234`.
    """
    if value == 0:
        return "0"
    rounded = round(value, _decimal_places(value, digits))
    # Rounding may add a digit: with three digits 9.996 is 10.0, not 10.00.
    return f"{rounded:,.{_decimal_places(rounded, digits)}f}"


def _decimal_places(value: float, digits: int) -> int:
    """Return how many decimal places show `digits` significant digits of `value`."""
    exponent = math.floor(math.log10(abs(value)))
    return max(0, digits - 1 - exponent)


def seconds(value: float, digits: int = _DIGITS[0]) -> str:
    """Format seconds in a fitting unit: `14.1 s`, `117 ms`, `8.31 µs`."""
    for unit_seconds, unit in _TIMES:
        # With three digits 0.9995 s is rounded to 1.00 s, which is shorter than 1,000 ms.
        if abs(value) >= unit_seconds * 0.9995:
            return f"{significant(value / unit_seconds, digits)} {unit}"
    return f"{significant(value / 1e-9, digits)} ns"  # less than a nanosecond


def digits_that_agree(
    quotients: Iterable[tuple[float, float, float]], format_value: Callable[[float, int], str] = seconds
) -> int:
    """Return how many digits to print, so that a reader who divides two printed values gets the printed quotient.

    Return the fewest digits with which this is so for all `quotients`, from 3 to 7; 3 if not even 7 are enough.

    Args:
        quotients: (dividend, divisor, quotient), such as (seconds before, seconds after, speedup).
        format_value: Formats a dividend or a divisor with a number of digits.
    """
    all_quotients = tuple(quotients)
    for digits in _DIGITS:
        if all(_agrees(*quotient, digits, format_value) for quotient in all_quotients):
            return digits
    return _DIGITS[0]


def _agrees(
    dividend: float, divisor: float, quotient: float, digits: int, format_value: Callable[[float, int], str]
) -> bool:
    """Return True if the printed dividend, divided by the printed divisor, is the printed quotient, up to rounding."""
    printed_quotient = speedup(quotient)
    decimals = printed_quotient.removesuffix("x").partition(".")[2]
    unit_of_last_digit = 10.0 ** -len(decimals)
    quotient_of_printed = parse(format_value(dividend, digits)) / parse(format_value(divisor, digits))
    return abs(quotient_of_printed - parse(printed_quotient)) <= _TOLERANCE * unit_of_last_digit


def parse(text: str) -> float:
    """Parse a speedup or a time that this module has formatted: `2.04x` is 2.04, and `117 ms` is 0.117 (seconds)."""
    number, _, unit = text.removesuffix("x").partition(" ")
    return float(number.replace(",", "")) * _UNITS.get(unit, 1.0)


def duration(value: float) -> str:
    """Format seconds as `45 s`, `2 min 05 s` or `1 h 10 min`."""
    whole_seconds = max(0, round(value))
    if whole_seconds < _MINUTE:
        return f"{whole_seconds} s"
    if whole_seconds < _HOUR:
        return f"{whole_seconds // _MINUTE} min {whole_seconds % _MINUTE:02} s"
    return f"{whole_seconds // _HOUR} h {whole_seconds % _HOUR // _MINUTE:02} min"


def speedup(value: float, digits: int = _DIGITS[0]) -> str:
    """Format a ratio as a speedup: `26.1x`. Near 1 it has more digits: `0.998x`, `1.004x`."""
    is_near_one = 0.9 <= value < 1.1  # noqa: PLR2004
    if is_near_one:
        # Ratios below and above 1 have the same decimals, at least three: `digits` without the digit before the point.
        return f"{value:.{max(3, digits - 1)}f}x"
    return f"{significant(value, digits)}x"


def interval(lower: float, upper: float) -> str:
    """Format the two ends of a ratio's interval: `2.01 to 2.07`."""
    return f"{speedup(lower).removesuffix('x')} to {speedup(upper).removesuffix('x')}"


def prose(value: float) -> str:
    """Format a ratio for a sentence, rounded to three significant digits: `2.04`, `1,230`."""
    rounded = float(f"{value:.3g}")  # `significant` does not round 1234 to 1230
    return significant(rounded)


def percent(ratio: float) -> str:
    """Format a ratio as a percentage: `0.4 %`, `12 %`."""
    percentage = ratio * 100
    if abs(percentage) < 10:  # noqa: PLR2004
        return f"{percentage:.1f} %"
    return f"{percentage:,.0f} %"


def spread(ratio: float) -> str:
    """Format the relative spread of times: `± 0.4 %`.

    `ratio` is half of (95th - 5th percentile), divided by the geometric mean.
    """
    # A ratio above 1 is shown without `±`, because a time that is more than 100 % shorter would be negative.
    return f"± {percent(ratio)}" if ratio <= 1 else "> 100 %"


def quantity(value: float, unit: str) -> str:
    """Format a quantity with a metric prefix: `4.56 TFLOP/s`, `312 MB`."""
    prefix_index = 0
    while abs(value) >= 999.5 and prefix_index < len(_PREFIXES) - 1:  # noqa: PLR2004 - 999.5 is shown as 1,000
        value /= 1000
        prefix_index += 1
    return f"{significant(value)} {_PREFIXES[prefix_index]}{unit}"


def join_names(names: Sequence[str]) -> str:
    """Join names: `a`, `a and b`, `a, b and c`."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def between(lower: float, upper: float) -> str:
    """Format an interval for a sentence: `between 0.891 and 2.08`, or only `2.08` if both ends look the same."""
    lower_text, upper_text = prose(lower), prose(upper)
    if lower_text == upper_text:
        return lower_text
    return f"between {lower_text} and {upper_text}"


def count(value: int, unit: str = "") -> str:
    """Format a count with three significant digits, and its unit if there is one: `1,240 steps`, `1 step`."""
    digits_to_round = max(0, len(str(value)) - 3)
    rounded = round(value, -digits_to_round)
    if not unit:
        return f"{rounded:,}"
    plural = "" if rounded == 1 else "s"
    return f"{rounded:,} {unit}{plural}"
