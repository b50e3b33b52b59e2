"""How the page says a ratio: two digits, `29 times as slow`, and no ratio where the interval has 1 inside. Pure."""

import re

from accelbench import figures
from accelbench.verdict.expectations import within

DIGITS = 2
ALIKE = 0.02
"""Times this close are called alike."""


_EXACTLY = re.compile(r"at least (\S+) and at most \1(?=:)")
_MANY = re.compile(r"\b(\d{7,}|\d{1,3}(?:,\d{3}){2,})\b(?: B)?")
"""Millions, which are always bytes here."""


def times(speedup: float, lower: float | None = None, upper: float | None = None) -> str:
    """`1.9 times as fast (1.6 to 2.2)`, `29 times as slow (28 to 30)`, `no difference found (0.98 to 1.02)`."""
    ends = None if lower is None or upper is None else (lower, upper)
    if ends and ends[0] < 1 < ends[1]:
        return f"no difference found{_between(*ends)}"
    if abs(speedup - 1) <= ALIKE:
        return f"as fast{_between(*ends)}" if ends else "as fast"
    if speedup > 1:
        return f"{short(speedup)} times as fast{_between(*ends) if ends else ''}"
    return f"{short(1 / speedup)} times as slow{_between(1 / ends[1], 1 / ends[0]) if ends else ''}"


def short(value: float) -> str:
    """Two significant digits; three from 1 to 2, where two would round a tenth away."""
    digits = DIGITS + 1 if 0.9 <= value < 2 else DIGITS  # noqa: PLR2004 - see above
    return figures.significant(float(f"{value:.{digits}g}"), digits)


def _between(lower: float, upper: float) -> str:
    low, high = short(lower), short(upper)
    if low == high:
        low, high = (figures.significant(float(f"{end:.{DIGITS + 1}g}"), DIGITS + 1) for end in (lower, upper))
    return f" ({low} to {high})"


def plainly(sentence: str) -> str:
    """What became of an expectation, as one answers: yes, no, undecided; in few digits."""
    sentence = _EXACTLY.sub(r"exactly \1", sentence.replace(": not-met", ": no").replace(": met", ": yes"))
    return _MANY.sub(lambda found: figures.quantity(float(found[1].replace(",", "")), "B"), sentence)


def compared(variant: str, baseline: str, at_least: str | None, at_most: str | None) -> str:
    """What was expected of a speedup: `jax/jit at least 10 times as fast as jax/op-by-op`."""
    if at_least is None and at_most == "1":
        return f"{variant} no faster than {baseline}"
    if at_most is None and at_least == "1":
        return f"{variant} no slower than {baseline}"
    if at_least is None and at_most is not None and float(at_most) < 1:
        return f"{variant} at least {short(1 / float(at_most))} times as slow as {baseline}"
    return f"{variant} {within(at_least, at_most)} times as fast as {baseline}"
