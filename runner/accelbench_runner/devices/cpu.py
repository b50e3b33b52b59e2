"""The processor: its model, this process's memory, and what the machine took away while something was measured."""

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


@cache
def model() -> str:
    """The processor's name as the kernel tells it, asked once: it may take milliseconds; else the architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, os.uname().machine)


def held_bytes() -> int:
    """Memory of its own that this process holds now: not libraries' files, which it shares and reads on demand."""
    process = psutil.Process().memory_info()
    return int(process.rss) - _status("RssFile", default=0)


def restart_peak() -> None:
    """Makes `peak_bytes` start again from what is held now; where the kernel refuses, the old peak stands."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The most memory of its own that this process has held since `restart_peak`.

    The kernel keeps the peak of all that is resident. What is taken off are the files that are resident now: where more
    of them was read after the peak, this is as much too little.
    """
    resident = _status("VmHWM", default=1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    return resident - _status("RssFile", default=0)


def _status(name: str, *, default: int) -> int:
    """Bytes that the kernel says of this process under that name."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return default
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), default)


class Taken(NamedTuple):
    """Processor time that was taken away, since boot or since the group was made."""

    periods: int
    """In which the control group was held back by its quota."""
    seconds: float
    """For which it was."""
    steal_seconds: float
    """Of the processors that this process may run on, that the hypervisor gave to others."""
    pressure_seconds: float
    """For which some task of the group, or of the machine where groups do not tell, waited for a processor: our own
    threads that wait for each other count too."""

    def since(self, earlier: "Taken") -> "Taken":
        """What was taken between two readings."""
        return Taken(
            self.periods - earlier.periods,
            self.seconds - earlier.seconds,
            self.steal_seconds - earlier.steal_seconds,
            self.pressure_seconds - earlier.pressure_seconds,
        )


class Processors(Protocol):
    """What the machine tells of those that this process may run on: this module, or a simulation."""

    def taken(self) -> Taken:
        """What was taken away until now."""
        ...

    def usage(self) -> "Usage":
        """Who spent how much of them until now."""
        ...

    def burnt_elsewhere(self) -> float:
        """Seconds of them that this process has spent in other threads than the one that asks."""
        ...

    def others(self) -> processes.Reading:
        """What each other process has used until now, as far as they can be seen."""
        ...


def taken() -> Taken:
    """Read before and after what is measured."""
    steal = sum(times.steal for times in _own_processors())
    return Taken(*_throttled(), steal_seconds=steal, pressure_seconds=_pressure())


class Usage(NamedTuple):
    """Of the processors that this process may run on, since boot."""

    all_seconds: float
    """Processor time spent by anyone."""
    own_seconds: float
    """By this process, its threads included."""
    waited_seconds: float | None = None
    """For which its threads that live now waited for their turn; None where the kernel does not tell."""

    def by_others_since(self, earlier: "Usage") -> float:
        """Seconds that others spent between two readings; ticks of 10 ms make it coarse."""
        return (self.all_seconds - earlier.all_seconds) - (self.own_seconds - earlier.own_seconds)


def usage() -> Usage:
    """Read before and after what is measured. In a container too, the kernel tells of the whole machine."""
    spent = sum(each.user + each.nice + each.system + each.irq + each.softirq for each in _own_processors())
    return Usage(all_seconds=spent, own_seconds=time.process_time(), waited_seconds=_waited())


def _waited() -> float | None:
    """The second number of a thread's schedstat is nanoseconds in the queue; proc(5) has it from Linux 2.6.13 on."""
    waited = 0
    for thread in Path("/proc/self/task").iterdir():
        try:
            waited += int((thread / "schedstat").read_text().split()[1])
        except (FileNotFoundError, ProcessLookupError):
            if not Path("/proc/self/schedstat").exists():
                return None  # else the thread has just ended
        except (OSError, IndexError, ValueError):
            return None
    return waited / 1e9


def others() -> processes.Reading:
    """Read before and after what is measured; each reading takes some milliseconds."""
    return processes.read()


def burnt_elsewhere() -> float:
    """Processor time of this process's other threads and of its children, in seconds: who watches does not see itself.

    A child that has ended counts for as long as nobody has waited for it.
    """
    return time.process_time() - time.thread_time() + _burnt_by_children()


def _burnt_by_children() -> float:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)  # tells at once that there are none
    except ChildProcessError:
        return 0.0
    burnt = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            times = child.cpu_times()
            burnt += times.user + times.system
    return burnt


def _own_processors() -> list[Any]:
    """Times of the processors that this process may run on."""
    times = dict(enumerate(psutil.cpu_times(percpu=True)))
    return [times[number] for number in os.sched_getaffinity(0) if number in times]


def _pressure() -> float:
    group = cgroup.find("cpu")
    own = [group.directory / "cpu.pressure"] if group and group.version == 2 else []  # noqa: PLR2004
    for file in (*own, Path("/proc/pressure/cpu")):
        with suppress(OSError, ValueError):
            return int(file.read_text().splitlines()[0].partition("total=")[2]) / 1e6
    return 0.0


def _throttled() -> tuple[int, float]:
    group = cgroup.find("cpu")
    try:
        lines = (group.directory / "cpu.stat").read_text().splitlines() if group else []
    except OSError:
        lines = []
    counts = {name: int(value) for name, value in (line.split() for line in lines)}
    v1_seconds, v2_seconds = counts.get("throttled_time", 0) / 1e9, counts.get("throttled_usec", 0) / 1e6
    return counts.get("nr_throttled", 0), v1_seconds + v2_seconds
