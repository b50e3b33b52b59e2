"""How the page says a ratio, a bound, and which result is meant. Pure.

Two digits, `29 times as slow`, and no ratio where the interval has 1 inside.
"""

import re
from collections.abc import Mapping, Sequence

from accelbench import figures
from accelbench.api.result import Result
from accelbench.verdict.expectations import within

DIGITS = 2
ALIKE = 0.02
"""Times this close are called alike."""


_EXACTLY = re.compile(r"at least (\S+) and at most \1(?=:)")
_BYTES = re.compile(r"\w+Bytes of ")
_MANY = re.compile(r"\b(\d{4,}|\d{1,3}(?:,\d{3})+)\b(?: B)?")


def times(speedup: float, lower: float | None = None, upper: float | None = None) -> str:
    """`1.9 times as fast (1.6 to 2.2)`, `29 times as slow (28 to 30)`, `no difference found (0.98 to 1.02)`."""
    ends = None if lower is None or upper is None else (lower, upper)
    if ends and ends[0] < 1 < ends[1]:
        return f"no difference found ({' to '.join(_read(*ends))})"
    if abs(speedup - 1) <= ALIKE:
        return f"as fast ({' to '.join(_read(*ends))})" if ends else "as fast"
    if speedup < 1:
        speedup, ends = 1 / speedup, ends and (1 / ends[1], 1 / ends[0])
        how = "slow"
    else:
        how = "fast"
    if ends is None:
        return f"{short(speedup)} times as {how}"
    low, middle, high = _read(ends[0], speedup, ends[1])
    return f"{middle} times as {how} ({low} to {high})"


def short(value: float) -> str:
    """Two significant digits; three from 1 to 2, where two would round a tenth away."""
    digits = DIGITS + 1 if 0.9 <= value < 2 else DIGITS  # noqa: PLR2004 - see above
    return figures.significant(float(f"{value:.{digits}g}"), digits)


def _read(*values: float) -> list[str]:
    """With a digit more where that tells apart what would read the same."""
    found = [short(value) for value in values]
    longer = [figures.significant(float(f"{value:.{DIGITS + 1}g}"), DIGITS + 1) for value in values]
    return longer if len(set(longer)) > len(set(found)) else found


def plainly(sentence: str) -> str:
    """What became of an expectation, as one answers: yes, no, undecided; in few digits."""
    sentence = _EXACTLY.sub(r"exactly \1", sentence.replace(": not-met", ": no").replace(": met", ": yes"))
    if not _BYTES.search(sentence):
        return sentence
    return _MANY.sub(lambda found: figures.quantity(float(found[1].replace(",", "")), "B"), sentence)


def given(result: Result) -> Mapping[str, str]:
    """What its workload was given, defaults included."""
    parts = ((key.partition("."), value) for key, value in result.fingerprint.items())
    return {name: value for (kind, _, name), value in parts if kind == "parameter"}


def whose(result: Result, results: Sequence[Result]) -> str:
    """What tells it from the others: its workload, what a sweep swept, its device, and what else differs."""
    swept = [f"{name} {value}" for name, value in result.case.swept.items()]
    several = len({each.case.workload for each in results}) > 1
    same = [given(each) for each in results if each.case.workload == result.case.workload]
    own = given(result)
    told = {name for name in own if len({each.get(name) for each in same}) > 1} - set(result.case.swept)
    more = [f"{name} {own[name]}" for name in sorted(told)]
    measured = {each.case.accelerator.platform for each in results if not each.compiled}
    device = [measured_on(result)] * (len(measured) > 1 and not result.compiled)
    return ", ".join([result.case.workload] * several + swept + more + device)


def measured_on(result: Result) -> str:
    """A GPU's name, or that it was a CPU."""
    platform = result.case.accelerator.platform
    return result.fingerprint.get("device.name") or platform.upper() if platform != "cpu" else "CPU"


def compared(variant: str, baseline: str, at_least: str | None, at_most: str | None) -> str:
    """What was expected of a speedup: `jax/jit at least 10 times as fast as jax/op-by-op`."""
    if at_least is None and at_most == "1":
        return f"{variant} no faster than {baseline}"
    if at_most is None and at_least == "1":
        return f"{variant} no slower than {baseline}"
    if at_least is None and at_most is not None and float(at_most) < 1:
        return f"{variant} at least {short(1 / float(at_most))} times as slow as {baseline}"
    return f"{variant} {within(at_least, at_most)} times as fast as {baseline}"
