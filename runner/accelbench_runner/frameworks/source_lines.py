"""Find the lines of a user's program among stack frames, and format them."""

import sysconfig
from collections.abc import Iterable
from pathlib import Path

import accelbench
import accelbench_runner
from accelbench.document import shorten
from accelbench.launch.facts import MAXIMUM_OPERATION_CHARACTERS

_PACKAGE = Path(accelbench.__file__).parent
_WORKLOADS = f"{_PACKAGE / 'workloads'}/"
"""Accelbench's workloads are measured like a user's program."""
_LIBRARIES = (
    f"{_PACKAGE}/",
    f"{Path(accelbench_runner.__file__).parent}/",
    f"{sysconfig.get_paths()['stdlib']}/",
    "<",  # no file, such as `<frozen importlib>`
)
_INSTALLED = ("/site-packages/", "/dist-packages/")

Line = tuple[str, int]
"""A file and the number of a line in it."""


def is_user_file(file: str) -> bool:
    """Return True for a file of the program that is measured, and False for one of a library or of accelbench."""
    if file.startswith(_WORKLOADS):
        return True
    return not file.startswith(_LIBRARIES) and not any(part in file for part in _INSTALLED)


def format_lines(lines: Iterable[Line]) -> str:
    """Format lines as `step.py:9-11,14`, each file once; empty without lines."""
    numbers_by_file: dict[str, list[int]] = {}
    for file, number in sorted(set(lines)):
        numbers_by_file.setdefault(file, []).append(number)
    texts = (f"{Path(file).name}:{_format_numbers(numbers)}" for file, numbers in numbers_by_file.items())
    return shorten(", ".join(texts), MAXIMUM_OPERATION_CHARACTERS)


def _format_numbers(numbers: Iterable[int]) -> str:
    """Format ascending numbers as `9-11,14`."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
