"""Choose the processors that a case runs on, and measure what other processes use of them.

A case runs on as many processors as the container may use, chosen once, the same for every launch. CPU affinity limits
it, because every thread pool follows affinity (XLA's ignores OMP_NUM_THREADS); the variables that OpenMP and BLAS
libraries read are set to the same number. If there are more processors than the quota pays for, idle ones are taken,
and one hardware thread of each core before a second: two pods on a node must not both settle on the first core.

/proc is read here without psutil, so that the supervisor stays small.
"""

import contextlib
import os
import random
import resource
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from accelbench.machine import cgroup
from accelbench_runner.supervisor.children import descendants, stat_fields

OBSERVATION_SECONDS = 0.2
BUSY_SHARE = 0.2
"""Maximum share of time for which an idle processor may be busy."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def allowed_threads(available: int, quota: float | None, requested: int | None = None) -> int:
    """Return the number of processors within `available`, the container's `quota` and `requested`, at least one."""
    return max(1, min([available, *(int(limit) for limit in (quota, requested) if limit is not None)]))


def set_affinity(requested: int | None = None) -> tuple[int, ...]:
    """Bind this process, and so every child it starts, to the case's processors; return their numbers."""
    available = os.sched_getaffinity(0)
    threads = allowed_threads(len(available), cgroup.processor_quota(cgroup.find("cpu")), requested)
    if threads < len(available):
        before = _busy_seconds()
        time.sleep(OBSERVATION_SECONDS)
        after = _busy_seconds()
        busy = {number: (after.get(number, 0) - before.get(number, 0)) / OBSERVATION_SECONDS for number in available}
        chosen = choose(busy, threads, siblings={number: _core(number) for number in available}, rng=random.Random())  # noqa: S311 - spreads pods over a node
        os.sched_setaffinity(0, chosen)
    return tuple(sorted(os.sched_getaffinity(0)))


def choose(
    busy: Mapping[int, float], count: int, *, siblings: Mapping[int, str], rng: random.Random
) -> Collection[int]:
    """Choose `count` processors: idle before busy ones, then those of a core not used yet, then at random.

    `busy` maps each processor to the share of time that it was busy, `siblings` to its core.
    """
    shuffled: Sequence[int] = rng.sample(sorted(busy), len(busy))
    chosen: list[int] = []
    while len(chosen) < count:
        used_cores = {siblings[number] for number in chosen}
        candidates = (number for number in shuffled if number not in chosen)
        chosen.append(min(candidates, key=lambda number: (busy[number] > BUSY_SHARE, siblings[number] in used_cores)))
    return chosen


def thread_environment(threads: int) -> dict[str, str]:
    """Return the environment variables that set the number of threads of OpenMP and BLAS libraries."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


class ProcessorUse(NamedTuple):
    """Hold what other processes have used of the processors that this one may run on."""

    others_seconds: float
    """Since boot: all processes but this one and its descendants, and the hypervisor."""
    now: float
    """Monotonic seconds of the reading."""
    processors: frozenset[int]

    @classmethod
    def read(cls) -> "ProcessorUse":
        """Read the counters of the kernel; a kernel without them reads as an idle machine."""
        processors = frozenset(os.sched_getaffinity(0))
        ended_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own_seconds = time.process_time() + ended_children.ru_utime + ended_children.ru_stime + _used_by_descendants()
        busy_seconds: Mapping[int, float] = {}
        with contextlib.suppress(OSError):
            busy_seconds = _busy_seconds()
        used = sum(seconds for number, seconds in busy_seconds.items() if number in processors)
        return cls(used - own_seconds, time.monotonic(), processors)

    def others_share_since(self, before: "ProcessorUse") -> float:
        """Return the share of processor time that others took since `before`; 0 after a change of affinity."""
        available_seconds = (self.now - before.now) * len(self.processors)
        if self.processors != before.processors or available_seconds <= 0:
            return 0.0
        return min(1.0, max(0.0, self.others_seconds - before.others_seconds) / available_seconds)


def _core(processor: int) -> str:
    """Return a name of the core that a processor belongs to; unknown processors are cores of their own."""
    path = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
    try:
        return path.read_text().strip()
    except OSError:
        return f"cpu{processor}"


def _busy_seconds() -> dict[int, float]:
    """Read how long each processor has been busy since boot: all but idle time and waiting for disks."""
    seconds = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, *rest = map(int, fields)
            ticks = user + nice + system + sum(rest[:3])  # interrupts, soft interrupts, stolen
            seconds[int(name.removeprefix("cpu"))] = ticks / os.sysconf("SC_CLK_TCK")
    return seconds


def _used_by_descendants() -> float:
    """Read the processor seconds of all descendants, those of their own ended children included."""
    ticks = 0
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, stat_fields(process)[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")
