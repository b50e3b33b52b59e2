"""What others take of the processors that a launch may run on.

Read by hand, and not by psutil, which this process does without.
"""

import contextlib
import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

from accelbench_runner.supervisor.children import descendants, stat_fields


class Crowd(NamedTuple):
    """What others have used of the processors that we may run on, and when that was read."""

    others: float
    """Seconds since boot of everybody but us and what descends from us; those of the hypervisor too."""
    now: float
    processors: frozenset[int]

    @classmethod
    def read(cls) -> "Crowd":
        """As of now."""
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = time.process_time() + ended.ru_utime + ended.ru_stime + _used_by_descendants()
        processors = frozenset(os.sched_getaffinity(0))
        return cls(_taken_from(processors) - ours, time.monotonic(), processors)

    def share_since(self, before: "Crowd") -> float:
        """Of the processors' time after `before`, what others took; 0 where we may run on other processors now."""
        offered = (self.now - before.now) * len(self.processors)
        if self.processors != before.processors:
            return 0.0
        return min(1.0, max(0.0, self.others - before.others) / offered) if offered > 0 else 0.0


def _used_by_descendants() -> float:
    """Seconds that whatever descends from us has used so far, with what it has waited for."""
    ticks = 0
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, stat_fields(process)[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")


def _taken_from(processors: frozenset[int]) -> float:
    """Seconds of these processors, spent by anyone or stolen; 0 where the kernel does not tell."""
    names = {f"cpu{number}" for number in processors}
    try:
        lines = Path("/proc/stat").read_text().splitlines()
    except OSError:
        return 0.0
    ticks = 0
    for name, user, nice, system, _idle, _waiting, *rest in (line.split() for line in lines if line.startswith("cpu")):
        if name in names:
            ticks += sum(map(int, (user, nice, system, *rest[:3])))  # interrupts, soft ones, stolen
    return ticks / os.sysconf("SC_CLK_TCK")
