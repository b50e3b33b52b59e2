"""Read the CPU's model, this process's memory, and the use of CPUs by this process and by others."""

import os
import resource
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import psutil

from accelbench.machine import cgroup
from accelbench_runner.devices import processes


@cache  # reading takes milliseconds
def model() -> str:
    """Return the CPU's model name or, if the kernel does not report that, the CPU's architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, os.uname().machine)


def resident_bytes() -> int:
    """Return the bytes of this process's resident memory, without mapped files, which other processes may share."""
    process = psutil.Process().memory_info()
    return int(process.rss) - _status_bytes("RssFile", default=0)


def restart_peak() -> None:
    """Reset the peak that `peak_bytes` reads to the current memory, if the kernel allows that."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")  # 5 resets VmHWM, see proc(5)


def peak_bytes() -> int:
    """Return the peak of this process's resident bytes since `restart_peak`, without mapped files.

    The files that are mapped now are subtracted, so the result is too small if some were mapped after the peak.
    """
    # If the kernel does not report VmHWM, take the peak since the process started, which cannot be reset.
    maximum_rss_kibibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    peak = _status_bytes("VmHWM", default=1024 * maximum_rss_kibibytes)
    return peak - _status_bytes("RssFile", default=0)


def _status_bytes(name: str, *, default: int) -> int:
    """Return a field of /proc/self/status in bytes, or `default` if it is missing."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return default
    for line in lines:
        if line.startswith(f"{name}:"):
            kibibytes = int(line.split()[1])  # a line is `VmHWM:  1234 kB`
            return 1024 * kibibytes
    return default


class Contention(NamedTuple):
    """Hold CPU time that this process could not use, since boot or since its control group was created."""

    periods: int
    """Periods in which the control group was throttled by its quota."""
    seconds: float
    """Seconds for which the control group was throttled."""
    steal_seconds: float
    """Seconds that the hypervisor gave to other machines, on the CPUs that this process may run on."""
    pressure_seconds: float
    """Seconds for which some task of the control group, or else of the machine, waited for a CPU. Threads of this
    process that wait for each other count too."""

    def since(self, earlier: "Contention") -> "Contention":
        """Return how much each field has grown since an `earlier` reading."""
        return Contention(
            self.periods - earlier.periods,
            self.seconds - earlier.seconds,
            self.steal_seconds - earlier.steal_seconds,
            self.pressure_seconds - earlier.pressure_seconds,
        )


class Processors(Protocol):
    """Read the CPUs that this process may run on. This module implements the protocol; so can a simulation."""

    def contention(self) -> Contention:
        """Read the CPU time that this process could not use."""
        ...

    def usage(self) -> "Usage":
        """Read the CPU time used so far."""
        ...

    def other_threads_seconds(self) -> float:
        """Return the CPU time of this process's other threads and of its children."""
        ...

    def other_processes(self) -> processes.Reading:
        """Read the CPU time of each other process."""
        ...


def contention() -> Contention:
    """Read the CPU time that this process could not use so far: throttling, hypervisor steal, and CPU pressure."""
    steal = sum(times.steal for times in _times_of_allowed_processors())
    return Contention(*_read_throttling(), steal_seconds=steal, pressure_seconds=_pressure_seconds())


class Usage(NamedTuple):
    """Hold the use of the CPUs that this process may run on, since boot."""

    all_seconds: float
    """Seconds spent by all processes."""
    process_seconds: float
    """Seconds spent by all threads of this process."""
    waited_seconds: float | None = None
    """Seconds for which this process's live threads waited for a CPU; None if the kernel does not report them."""

    def others_seconds_since(self, earlier: "Usage") -> float:
        """Return the CPU seconds that other processes used since the reading `earlier`, with a resolution of 10 ms."""
        return (self.all_seconds - earlier.all_seconds) - (self.process_seconds - earlier.process_seconds)


def usage() -> Usage:
    """Read how much CPU time this process has used, and all processes together, also those outside this container.

    Only the CPUs that this process may run on are counted. Read also how long this process has waited for a CPU.
    """
    all_seconds = sum(
        cpu.user + cpu.nice + cpu.system + cpu.irq + cpu.softirq for cpu in _times_of_allowed_processors()
    )
    return Usage(all_seconds=all_seconds, process_seconds=time.process_time(), waited_seconds=_waited_seconds())


def _waited_seconds() -> float | None:
    """Return the seconds for which this process's live threads have waited for a CPU; None if they are not counted."""
    nanoseconds = 0
    for thread in Path("/proc/self/task").iterdir():
        try:
            # The second number is the waiting time, see proc(5).
            nanoseconds += int((thread / "schedstat").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            if not Path("/proc/self/schedstat").exists():
                return None  # the kernel counts no waiting
            # Otherwise this thread has just ended: leave its time out.
        except (OSError, IndexError, ValueError):
            return None
    return nanoseconds / 1e9


def other_processes() -> processes.Reading:
    """Read the CPU time of each other process; this takes milliseconds."""
    return processes.read()


def other_threads_seconds() -> float:
    """Return the CPU seconds of this process's threads except the current one, and of its child processes.

    These are all descendants that have not been waited for.
    """
    return time.process_time() - time.thread_time() + _descendants_seconds()


def _descendants_seconds() -> float:
    """Return the CPU seconds of all descendants of this process that have not been waited for."""
    try:
        # Without children this raises at once, which saves scanning all processes below.
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return 0.0
    seconds = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            seconds += times.user + times.system
    return seconds


def _times_of_allowed_processors() -> list[Any]:
    """Return psutil's CPU times of each CPU that this process may run on, without CPUs that psutil does not list."""
    times = dict(enumerate(psutil.cpu_times(percpu=True)))
    return [times[index] for index in os.sched_getaffinity(0) if index in times]


def _pressure_seconds() -> float:
    """Return the seconds for which at least one task waited for a CPU; 0 if the kernel does not count them.

    The tasks are those of the control group or, if the kernel does not count per group, those of the machine.
    """
    group = cgroup.find("cpu")
    files = [Path("/proc/pressure/cpu")]  # of the whole machine
    if group and group.version == 2:  # noqa: PLR2004 - version 1 reports no pressure
        files.insert(0, group.directory / "cpu.pressure")
    for file in files:
        with suppress(OSError, ValueError):
            some_line = file.read_text().splitlines()[0]  # `some avg10=0.00 avg60=0.00 avg300=0.00 total=MICROSECONDS`
            return int(some_line.partition("total=")[2]) / 1e6
    return 0.0


def _read_throttling() -> tuple[int, float]:
    """Return the number of periods and the seconds for which the CPU quota throttled the control group.

    Both are 0 without a quota.
    """
    group = cgroup.find("cpu")
    try:
        lines = (group.directory / "cpu.stat").read_text().splitlines() if group else []
    except OSError:
        lines = []
    statistics = {}
    for line in lines:
        name, value = line.split()
        statistics[name] = int(value)
    # Version 1 of control groups reports `throttled_time` in nanoseconds, version 2 `throttled_usec` in microseconds.
    seconds = statistics.get("throttled_time", 0) / 1e9 + statistics.get("throttled_usec", 0) / 1e6
    return statistics.get("nr_throttled", 0), seconds
