"""Format ratios, bounds and names of results for the page. Pure.

Ratios have two digits, such as `29 times as slow`; there is no ratio if the interval contains 1.
"""

import re
from collections.abc import Mapping, Sequence

from accelbench import figures
from accelbench.api.result import Result
from accelbench.verdict.expectations import describe_bounds

DIGITS = 2
EQUAL_WITHIN = 0.02
"""Largest relative difference at which times are called equal."""


_EXACTLY = re.compile(r"at least (\S+) and at most \1(?=:)")
_BYTES = re.compile(r"\w+Bytes of ")
_MANY = re.compile(r"\b(\d{4,}|\d{1,3}(?:,\d{3})+)\b(?: B)?")


def times(speedup: float, lower: float | None = None, upper: float | None = None) -> str:
    """Format as `1.9 times as fast (1.6 to 2.2)`, or `no difference found (0.98 to 1.02)`."""
    ends = None if lower is None or upper is None else (lower, upper)
    if ends and ends[0] < 1 < ends[1]:
        return f"no difference found ({' to '.join(_format_apart(*ends))})"
    if abs(speedup - 1) <= EQUAL_WITHIN:
        return f"as fast ({' to '.join(_format_apart(*ends))})" if ends else "as fast"
    if speedup < 1:
        speedup, ends = 1 / speedup, ends and (1 / ends[1], 1 / ends[0])
        how = "slow"
    else:
        how = "fast"
    if ends is None:
        return f"{short(speedup)} times as {how}"
    low, middle, high = _format_apart(ends[0], speedup, ends[1])
    return f"{middle} times as {how} ({low} to {high})"


def short(value: float) -> str:
    """Format two significant digits, or three from 0.9 to 2, where two would round a tenth away."""
    digits = DIGITS + 1 if 0.9 <= value < 2 else DIGITS  # noqa: PLR2004 - see above
    return figures.significant(float(f"{value:.{digits}g}"), digits)


def _format_apart(*values: float) -> list[str]:
    """Format with one more digit if that distinguishes values that would otherwise look equal."""
    short_values = [short(value) for value in values]
    longer = [figures.significant(float(f"{value:.{DIGITS + 1}g}"), DIGITS + 1) for value in values]
    return longer if len(set(longer)) > len(set(short_values)) else short_values


def simplify_sentence(sentence: str) -> str:
    """Rewrite an expectation's sentence with yes, no or undecided, and few digits."""
    sentence = _EXACTLY.sub(r"exactly \1", sentence.replace(": not-met", ": no").replace(": met", ": yes"))
    if not _BYTES.search(sentence):
        return sentence
    return _MANY.sub(lambda match: figures.quantity(float(match[1].replace(",", "")), "B"), sentence)


def parameters_of(result: Result) -> Mapping[str, str]:
    """Return the workload's parameters, defaults included."""
    parts = ((key.partition("."), value) for key, value in result.fingerprint.items())
    return {name: value for (kind, _, name), value in parts if kind == "parameter"}


def distinguishing_name(result: Result, results: Sequence[Result]) -> str:
    """Return what distinguishes the result: workload, swept values, differing parameters, device."""
    swept = [f"{name} {value}" for name, value in result.case.swept.items()]
    several = len({values.case.workload for values in results}) > 1
    same = [parameters_of(values) for values in results if values.case.workload == result.case.workload]
    own = parameters_of(result)
    differing = {name for name in own if len({values.get(name) for values in same}) > 1} - set(result.case.swept)
    more = [f"{name} {own[name]}" for name in sorted(differing)]
    measured = {values.case.accelerator.platform for values in results if not values.compiled}
    device = [measured_on(result)] * (len(measured) > 1 and not result.compiled)
    return ", ".join([result.case.workload] * several + swept + more + device)


def measured_on(result: Result) -> str:
    """Return a GPU's name, or `CPU`."""
    platform = result.case.accelerator.platform
    return result.fingerprint.get("device.name") or platform.upper() if platform != "cpu" else "CPU"


def expected_speedup(variant: str, baseline: str, at_least: str | None, at_most: str | None) -> str:
    """Describe the expected speedup: `jax/jit at least 10 times as fast as jax/op-by-op`."""
    if at_least is None and at_most == "1":
        return f"{variant} no faster than {baseline}"
    if at_most is None and at_least == "1":
        return f"{variant} no slower than {baseline}"
    if at_least is None and at_most is not None and float(at_most) < 1:
        return f"{variant} at least {short(1 / float(at_most))} times as slow as {baseline}"
    return f"{variant} {describe_bounds(at_least, at_most)} times as fast as {baseline}"
