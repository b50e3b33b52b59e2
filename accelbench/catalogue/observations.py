"""What an experiment that is not about time may observe: what every launch does, and what a workload adds.

A workload names its own in `Workload.observes`, so that an expectation of what nobody observes is refused with the
nearest name before anything runs.
"""

import re
from collections.abc import Mapping

from accelbench.document import decimal_string
from accelbench.workload import Workload

Scalar = bool | int | float | str
"""What one observation is, on its way from a launch to a result."""

STANDARD: Mapping[str, str] = {
    "calls": "Calls of the step, one for each batch, in order.",
    "compilations": "Compilations that those calls triggered, by the framework's count; a graph break causes more.",
    "compilationsByCall": "The same for each call: 1, 0, 1.",
    "raised": "The type of the first exception that a call raised; or: nothing.",
    "raisedCalls": "Calls that raised.",
    "message": "The first line of that exception, if there is one.",
}
"""Observed by every launch; calls that raise leave the state as it was, and the next call goes on from there."""

NAME = re.compile(r"[a-z][A-Za-z0-9]{0,31}")
MAXIMUM_OWN = 8
MAXIMUM_CHARACTERS = 120
"""Of a text."""
MAXIMUM_DIGITS = 40


def names(workload: Workload) -> tuple[str, ...]:
    """Everything that can be observed of the workload."""
    return (*STANDARD, *workload.observes)


def written(value: Scalar) -> str:
    """As a result holds it: true or false; a fraction with six digits, with an exponent only where it is endless."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        plain = decimal_string(value)
        return plain if len(plain) <= MAXIMUM_DIGITS else f"{value:.6g}"
    return str(value)
