"""Format ratios, bounds and names of results for the page. Pure.

Ratios have two significant digits, such as `29 times as slow`. If the interval contains 1, no ratio is written.
"""

import math
import re
from collections.abc import Mapping, Sequence

from accelbench import figures
from accelbench.api.result import Result
from accelbench.verdict.expectations import describe_bounds

DIGITS = 2
EQUAL_WITHIN = 0.02
"""Maximum difference of a speedup from 1 that is described as `as fast`."""
EQUIVALENT_WITHIN = 0.1
"""Maximum relative distance of an interval's ends from 1 that is described as `within`; wider ones are `unknown`."""


_EXACTLY = re.compile(r"at least (\S+) and at most \1(?=:)")
"""Equal bounds in front of the colon of a sentence."""
_AS_EXPECTED = re.compile(r"((?:exactly|equal to) (.+)): yes, \2\.$")
"""A value that was expected and found."""
_BYTES = re.compile(r"\w+Bytes of ")
"""A metric in bytes, as the sentence of an expectation names it."""
_LONG_NUMBER = re.compile(r"\b(\d{4,}|\d{1,3}(?:,\d{3})+)\b(?: B)?")
"""A number of at least four digits, with or without commas and unit."""


def times(speedup: float, lower: float | None = None, upper: float | None = None) -> str:
    """Format a speedup, with its interval if `lower` and `upper` are given: `1.9 times as fast (1.6 to 2.2)`.

    A speedup of 0.5 becomes `2 times as slow`. An interval around 1 becomes `within 3 % (0.980 to 1.02)`, or `unknown
    (0.6 to 2.1)` if it reaches further than `EQUIVALENT_WITHIN`.
    """
    interval = None if lower is None or upper is None else (lower, upper)
    if interval and interval[0] < 1 < interval[1]:
        ends = " to ".join(_format_distinctly(*interval))
        distance = max(interval[1], 1 / interval[0]) - 1  # as ratios: 0.5 is as far from 1 as 2 is
        is_small = distance <= EQUIVALENT_WITHIN
        return f"within {math.ceil(100 * distance)} % ({ends})" if is_small else f"unknown ({ends})"
    if abs(speedup - 1) <= EQUAL_WITHIN:
        return f"as fast ({' to '.join(_format_distinctly(*interval))})" if interval else "as fast"
    direction = "fast"
    if speedup < 1:
        direction = "slow"
        speedup = 1 / speedup
        if interval:
            interval = 1 / interval[1], 1 / interval[0]  # inverting swaps the ends
    if interval is None:
        return f"{short(speedup)} times as {direction}"
    lower_text, speedup_text, upper_text = _format_distinctly(interval[0], speedup, interval[1])
    return f"{speedup_text} times as {direction} ({lower_text} to {upper_text})"


def brief(text: str) -> str:
    """Shorten a speedup for a narrow table: `2.1 times as fast (2.0 to 2.2)` becomes `2.1x as fast (2.0-2.2)`."""
    return text.replace(" times as", "x as").replace(" to ", "-")


def short(value: float) -> str:
    """Format a value with two significant digits, or with three if it is near 1, so that 1.04 stays 1.04."""
    digits = DIGITS + 1 if 0.9 <= value < 2 else DIGITS  # noqa: PLR2004 - near 1
    rounded = float(f"{value:.{digits}g}")  # `significant` does not round 1234 to 1200
    return figures.significant(rounded, digits)


def _format_distinctly(*values: float) -> list[str]:
    """Format values like `short`, or with three digits if two would make them equal.

    2.01 and 2.04 become `2.01` and `2.04`, not `2.0` twice.
    """
    short_texts = [short(value) for value in values]
    rounded_values = [float(f"{value:.{DIGITS + 1}g}") for value in values]
    longer_texts = [figures.significant(value, DIGITS + 1) for value in rounded_values]
    more_are_distinct = len(set(longer_texts)) > len(set(short_texts))
    return longer_texts if more_are_distinct else short_texts


def simplify_sentence(sentence: str) -> str:
    """Simplify an expectation's sentence for the page.

    `: met` becomes `: yes`, and `at least 3 and at most 3` becomes `exactly 3`. A measured value that equals the
    expected one is dropped: `exactly 3: yes, 3.` becomes `exactly 3: yes.` Numbers of bytes become MB or GB.
    """
    sentence = sentence.replace(": not-met", ": no").replace(": met", ": yes")
    sentence = _EXACTLY.sub(r"exactly \1", sentence)
    sentence = _AS_EXPECTED.sub(r"\1: yes.", sentence)
    if not _BYTES.search(sentence):
        return sentence
    return _LONG_NUMBER.sub(lambda match: figures.quantity(float(match[1].replace(",", "")), "B"), sentence)


def parameters_of(result: Result) -> Mapping[str, str]:
    """Return the workload's parameters by name, defaults included."""
    # The fingerprint has them as `parameter.NAME`.
    prefix = "parameter."
    return {key.removeprefix(prefix): value for key, value in result.fingerprint.items() if key.startswith(prefix)}


def distinguishing_name(result: Result, results: Sequence[Result]) -> str:
    """Return what distinguishes the result from the others: `size 256, CPU`; empty if nothing does.

    That is the workload if there are several, the swept parameters and others that differ, and the device if there are
    several.
    """
    case, parameters = result.case, parameters_of(result)
    names = []
    if len({other.case.workload for other in results}) > 1:
        names.append(case.workload)
    names += [f"{name} {value}" for name, value in case.swept.items()]
    parameters_of_workload = [parameters_of(other) for other in results if other.case.workload == case.workload]
    for name in sorted(parameters.keys() - case.swept.keys()):
        values = {other_parameters.get(name) for other_parameters in parameters_of_workload}
        if len(values) > 1:
            names.append(f"{name} {parameters[name]}")
    measured_platforms = {other.case.accelerator.platform for other in results if not other.compiled}
    if len(measured_platforms) > 1 and not result.compiled:
        names.append(device_name(result))
    return ", ".join(names)


def device_name(result: Result) -> str:
    """Return the name of the result's device; `CPU` for every CPU."""
    platform = result.case.accelerator.platform
    if platform == "cpu":
        return "CPU"
    return result.fingerprint.get("device.name") or platform.upper()


def expected_speedup(variant: str, baseline: str, at_least: str | None, at_most: str | None) -> str:
    """Describe the expected speedup: `jax/jit at least 10 times as fast as jax/op-by-op`.

    The bounds are decimals, or None if there is no such bound.
    """
    if at_least is None and at_most == "1":
        return f"{variant} no faster than {baseline}"
    if at_most is None and at_least == "1":
        return f"{variant} no slower than {baseline}"
    if at_least is None and at_most is not None and float(at_most) < 1:  # 0.5 times as fast is 2 times as slow
        return f"{variant} at least {short(1 / float(at_most))} times as slow as {baseline}"
    return f"{variant} {describe_bounds(at_least, at_most)} times as fast as {baseline}"
