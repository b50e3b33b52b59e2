"""Read the CPU time of other processes. In a container, only the container's processes are visible."""

import os
from collections.abc import Mapping
from typing import NamedTuple

import psutil

MAXIMUM_PROCESSES = 3
MAXIMUM_NAME_CHARACTERS = 40
ATTRIBUTES = ("pid", "name", "cpu_times", "create_time")


class ProcessUsage(NamedTuple):
    """Hold the CPU seconds that a process has used."""

    name: str
    pid: int
    seconds: float


Reading = Mapping[tuple[int, float], ProcessUsage]
"""Usage by PID and start time, because PIDs are reused."""


def read() -> Reading:
    """Return the CPU seconds that each process except this one has used, as far as they are visible from here."""
    reading = {}
    for process in psutil.process_iter(ATTRIBUTES):
        info = process.info
        if info["pid"] != os.getpid() and info["cpu_times"] is not None:
            # psutil gives None for what this process may not read.
            name = (info["name"] or "unknown")[:MAXIMUM_NAME_CHARACTERS]
            seconds = info["cpu_times"].user + info["cpu_times"].system
            reading[info["pid"], info["create_time"] or 0.0] = ProcessUsage(name, info["pid"], seconds)
    return reading


def busiest(before: Reading, after: Reading) -> list[ProcessUsage]:
    """Return up to `MAXIMUM_PROCESSES` processes that used most CPU time between two readings, busiest first.

    Processes that used none, or have ended before the second reading, are left out.
    """
    active = []
    for key, usage in after.items():
        seconds_before = before[key].seconds if key in before else 0.0
        seconds_between = usage.seconds - seconds_before
        if seconds_between > 0:
            active.append(usage._replace(seconds=seconds_between))
    return sorted(active, key=lambda usage: -usage.seconds)[:MAXIMUM_PROCESSES]
