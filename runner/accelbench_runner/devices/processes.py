"""Which other processes use the processors, as far as they can be seen: in a container, only its own."""

import os
from collections.abc import Mapping
from typing import NamedTuple

import psutil

NAMED = 3
MAXIMUM_NAME_CHARACTERS = 40
WANTED = ("pid", "name", "cpu_times", "create_time")


class Used(NamedTuple):
    """A process and the processor time that it has used."""

    name: str
    pid: int
    seconds: float


Reading = Mapping[tuple[int, float], Used]
"""By number and time of birth: numbers are given again."""


def read() -> Reading:
    """Everyone but this process; some milliseconds."""
    found = {}
    for process in psutil.process_iter(WANTED):
        told = process.info
        if told["pid"] != os.getpid() and told["cpu_times"] is not None:
            name = (told["name"] or "unknown")[:MAXIMUM_NAME_CHARACTERS]
            seconds = told["cpu_times"].user + told["cpu_times"].system
            found[told["pid"], told["create_time"] or 0.0] = Used(name, told["pid"], seconds)
    return found


def most(before: Reading, after: Reading) -> list[Used]:
    """Those that used most between two readings, the first of them most; at most `NAMED`."""
    spent = [
        each._replace(seconds=each.seconds - (before[key].seconds if key in before else 0.0))
        for key, each in after.items()
    ]
    return sorted((each for each in spent if each.seconds > 0), key=lambda each: -each.seconds)[:NAMED]
