"""Read the processor time of other processes; a container shows only its own."""

import os
from collections.abc import Mapping
from typing import NamedTuple

import psutil

MAXIMUM_PROCESSES = 3
MAXIMUM_NAME_CHARACTERS = 40
ATTRIBUTES = ("pid", "name", "cpu_times", "create_time")


class ProcessUsage(NamedTuple):
    """Hold the processor time of a process."""

    name: str
    pid: int
    seconds: float


Reading = Mapping[tuple[int, float], ProcessUsage]
"""Usage by PID and start time, because PIDs are reused."""


def read() -> Reading:
    """Read every process but this one, which takes some milliseconds."""
    reading = {}
    for process in psutil.process_iter(ATTRIBUTES):
        info = process.info
        if info["pid"] != os.getpid() and info["cpu_times"] is not None:
            name = (info["name"] or "unknown")[:MAXIMUM_NAME_CHARACTERS]
            seconds = info["cpu_times"].user + info["cpu_times"].system
            reading[info["pid"], info["create_time"] or 0.0] = ProcessUsage(name, info["pid"], seconds)
    return reading


def busiest(before: Reading, after: Reading) -> list[ProcessUsage]:
    """Return the processes that used most between two readings, at most `MAXIMUM_PROCESSES`, busiest first."""
    usages = [
        usage._replace(seconds=usage.seconds - (before[key].seconds if key in before else 0.0))
        for key, usage in after.items()
    ]
    active = [usage for usage in usages if usage.seconds > 0]
    return sorted(active, key=lambda usage: -usage.seconds)[:MAXIMUM_PROCESSES]
