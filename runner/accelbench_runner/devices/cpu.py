"""The processor: its model, this process's memory, and what the machine took away while something was measured."""

import os
import resource
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from accelbench import cgroup


def model() -> str:
    """The processor's name as the kernel tells it; the architecture where it tells none."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, os.uname().machine)


def resident_bytes() -> int:
    """Memory that this process holds now."""
    return int(psutil.Process().memory_info().rss)


def restart_peak() -> None:
    """Makes `peak_bytes` start again from what is held now; where the kernel refuses, the old peak stands."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most memory that this process has held since `restart_peak`."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        lines = []
    kibibytes = (int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    return 1024 * next(kibibytes, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


class Taken(NamedTuple):
    """Processor time that was taken away, since boot or since the group was made."""

    periods: int
    """In which the control group was held back by its quota."""
    seconds: float
    """For which it was."""
    steal_seconds: float
    """That the hypervisor gave to others."""

    def since(self, earlier: "Taken") -> "Taken":
        """What was taken between two readings."""
        return Taken(
            self.periods - earlier.periods,
            self.seconds - earlier.seconds,
            self.steal_seconds - earlier.steal_seconds,
        )


def taken() -> Taken:
    """Read before and after what is measured."""
    return Taken(*_throttled(), steal_seconds=psutil.cpu_times().steal)


def _throttled() -> tuple[int, float]:
    group = cgroup.find("cpu")
    try:
        lines = (group.directory / "cpu.stat").read_text().splitlines() if group else []
    except OSError:
        lines = []
    counts = {name: int(value) for name, value in (line.split() for line in lines)}
    v1_seconds, v2_seconds = counts.get("throttled_time", 0) / 1e9, counts.get("throttled_usec", 0) / 1e6
    return counts.get("nr_throttled", 0), v1_seconds + v2_seconds
