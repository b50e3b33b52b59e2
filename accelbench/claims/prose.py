"""Check the numbers in written answers against the tables of their rows.

An answer is written by hand, so it can contain a number that no result has. Each of its numbers has to be in the row's
tables, findings, question or quote, to the digits that it gives. A ratio in words, such as `half`, cannot be checked,
so it is refused.
"""

import math
import re
from collections.abc import Iterator

_NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)(?:\s?(%|[munµ]?s|[kMG]?B|W)\b|\s?(%))?")
"""A number with its unit, if it has one."""
_NO_FIGURES = re.compile(r"`[^`]*`|\brows? \d+(?:(?: to |, | and )\d+)*|\b\d{4}-\d\d-\d\d\b|\b\d+\.\d+\.\d+\b")
"""Text whose numbers are no figures: code, references to rows, days and versions."""
_IN_WORDS = re.compile(
    r"\b(half|halves|twice|thrice|doubled?|(?:a|one|two|three|four|five) (?:thirds?|quarters?|fifths?|tenths?)"
    r"|(?:two|three|four|five|six|seven|eight|nine|ten|hundred|thousand) times)\b",
    re.IGNORECASE,
)
_UNITS = {"us": "µs"}


def unsupported_figures(answer: str, supporting_text: str) -> tuple[str, ...]:
    """Return the figures of the answer that are not in the supporting text, and its ratios in words, such as `twice`.

    A figure is supported if a number with the same unit rounds to it at the figure's digits. Ratios in words cannot be
    checked, so all of them are returned.
    """
    supporting = list(_figures(supporting_text))
    unsupported = [text for text, value, unit in _figures(answer) if not _is_supported(text, value, unit, supporting)]
    return (*unsupported, *(match.group() for match in _IN_WORDS.finditer(answer)))


def _figures(text: str) -> Iterator[tuple[str, float, str]]:
    """Yield a tuple for each number of the text: its digits as written, its value, and its unit, which may be empty."""
    for match in _NUMBER.finditer(_NO_FIGURES.sub(" ", text)):
        number = match[1].rstrip(",")
        unit = match[2] or match[3] or ""
        yield number, float(number.replace(",", "")), _UNITS.get(unit, unit)


def _is_supported(text: str, value: float, unit: str, supporting: list[tuple[str, float, str]]) -> bool:
    """Return True if a supporting number rounds to `value` at the digits of `text`.

    Only numbers with the same unit count, unless `unit` is empty.
    """
    digits = text.replace(",", "")
    decimals = len(digits.partition(".")[2])
    if decimals == 0 and digits.endswith("0"):  # 600 can be rounded to hundreds
        decimals = -(len(digits) - len(digits.rstrip("0")))
    return any(
        math.isclose(round(supporting_value, decimals), value, rel_tol=1e-9)
        for _, supporting_value, supporting_unit in supporting
        if not unit or supporting_unit == unit
    )
