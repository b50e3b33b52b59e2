"""Define the observations of an experiment that is not about time: standard ones, and those of a workload.

A workload declares its observations in `Workload.observes`. A run that expects an unknown observation is refused before
anything runs, and the message suggests the nearest name.
"""

import re
from collections.abc import Mapping

from accelbench.document import decimal_string
from accelbench.workload import Workload

Scalar = bool | int | float | str
"""Value of one observation."""

STANDARD: Mapping[str, str] = {
    "calls": "Calls of the step, one for each batch, in order.",
    "compilations": "Compilations that those calls triggered, by the framework's count; a graph break causes more.",
    "compilationsByCall": "Compilations of each call: 1, 0, 1.",
    "raised": "The type of the first exception that a call raised; or: nothing.",
    "raisedCalls": "Calls that raised.",
    "message": "The first line of that exception, if there is one.",
}
"""Observations of every launch, with their meaning. A call that raises leaves the state as it was."""

NAME = re.compile(r"[a-z][A-Za-z0-9]{0,31}")
MAXIMUM_OWN = 8
"""Maximum number of a workload's own observations."""
MAXIMUM_CHARACTERS = 120
"""Maximum length of a text."""
MAXIMUM_DIGITS = 40
"""Maximum length of a number without an exponent."""


def names(workload: Workload) -> tuple[str, ...]:
    """Return the names of the standard observations, then those of the workload."""
    return (*STANDARD, *workload.observes)


def format_value(value: Scalar) -> str:
    """Format a value for a result, such as `true` or `1.5`; a long float is rounded to six digits."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        text = decimal_string(value)
        return text if len(text) <= MAXIMUM_DIGITS else f"{value:.6g}"
    return str(value)
