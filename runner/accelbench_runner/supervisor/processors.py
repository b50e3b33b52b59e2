"""Choose the CPUs that a case runs on, and measure what other processes use of them.

A case runs on as many CPUs as the container may use. They are chosen once, and all launches run on the same CPUs. CPU
affinity enforces this, because every thread pool follows affinity (XLA's ignores OMP_NUM_THREADS); the variables that
OpenMP and BLAS libraries read are set to the same number. If the node has more CPUs than the container's quota allows,
idle CPUs on different cores are preferred, so that two pods on a node do not both choose the first core.

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
"""Time for which the CPUs are watched to find idle ones."""
BUSY_SHARE = 0.2
"""Maximum share of time for which an idle CPU may be busy."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def allowed_cpus(available: int, quota: float | None, requested: int | None = None) -> int:
    """Return how many CPUs the case may use: the smallest of three numbers, but at least 1.

    `available` is the number of CPUs in this process's affinity, `quota` is the container's CPU limit, which is rounded
    down, and `requested` is the number that the user asked for. A number of None is no limit.
    """
    limits = [available]
    if quota is not None:
        limits.append(int(quota))  # rounds down: with more CPUs, the quota would throttle the case
    if requested is not None:
        limits.append(requested)
    return max(1, min(limits))


def set_affinity(requested: int | None = None) -> tuple[int, ...]:
    """Bind this process and its later children to as many CPUs as the case may use, idle ones first.

    At most `requested` CPUs are used; None: as many as the container may use. Returns the numbers of the CPUs.
    """
    available = os.sched_getaffinity(0)
    count = allowed_cpus(len(available), cgroup.cpu_quota(cgroup.find("cpu")), requested)
    if count < len(available):
        seconds_before = _busy_seconds()
        time.sleep(OBSERVATION_SECONDS)
        seconds_after = _busy_seconds()
        busy_shares = {
            cpu: (seconds_after.get(cpu, 0) - seconds_before.get(cpu, 0)) / OBSERVATION_SECONDS for cpu in available
        }
        cores = {cpu: _core_name(cpu) for cpu in available}
        rng = random.Random()  # noqa: S311 - spreads pods over a node
        os.sched_setaffinity(0, choose_cpus(busy_shares, count, cores=cores, rng=rng))
    return tuple(sorted(os.sched_getaffinity(0)))


def choose_cpus(
    busy_shares: Mapping[int, float], count: int, *, cores: Mapping[int, str], rng: random.Random
) -> Collection[int]:
    """Choose `count` CPUs: idle CPUs first, on different cores if possible.

    `busy_shares` maps each CPU to the share of time for which it was busy; `cores` maps each CPU to its core's name.
    """
    shuffled: Sequence[int] = rng.sample(sorted(busy_shares), len(busy_shares))
    chosen: list[int] = []
    while len(chosen) < count:
        used_cores = {cores[cpu] for cpu in chosen}
        candidates = [cpu for cpu in shuffled if cpu not in chosen]
        # False sorts before True, so the smallest rank is that of an idle CPU, if possible on an unused core.
        ranks = {cpu: (busy_shares[cpu] > BUSY_SHARE, cores[cpu] in used_cores) for cpu in candidates}
        chosen.append(min(candidates, key=lambda cpu: ranks[cpu]))
    return chosen


def thread_environment(threads: int) -> dict[str, str]:
    """Return variables that set the number of threads of OpenMP and BLAS libraries."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


class CpuUse(NamedTuple):
    """Hold the CPU time that other processes have used, on the CPUs that this process may run on."""

    others_seconds: float
    """CPU seconds since boot that the hypervisor took, or a process other than this one and its descendants."""
    read_at: float
    """Time of the reading, in monotonic seconds."""
    cpus: frozenset[int]

    @classmethod
    def read(cls) -> "CpuUse":
        """Read how many CPU seconds other processes have used since boot, on the CPUs of this process."""
        cpus = frozenset(os.sched_getaffinity(0))
        ended_children = resource.getrusage(resource.RUSAGE_CHILDREN)
        own_seconds = (
            time.process_time() + ended_children.ru_utime + ended_children.ru_stime + _seconds_of_descendants()
        )
        busy_seconds: Mapping[int, float] = {}  # without counters, other processes seem idle
        with contextlib.suppress(OSError):
            busy_seconds = _busy_seconds()
        used_seconds = sum(seconds for cpu, seconds in busy_seconds.items() if cpu in cpus)
        return cls(used_seconds - own_seconds, time.monotonic(), cpus)

    def others_share_since(self, before: "CpuUse") -> float:
        """Return the share of CPU time that other processes used since `before`, 0 to 1."""
        available_seconds = (self.read_at - before.read_at) * len(self.cpus)
        # After a change of affinity, the two readings cover different CPUs and cannot be compared.
        if self.cpus != before.cpus or available_seconds <= 0:
            return 0.0
        others_seconds = max(0.0, self.others_seconds - before.others_seconds)
        return min(1.0, others_seconds / available_seconds)


def _core_name(cpu: int) -> str:
    """Return a name of the CPU's physical core, such as `0,4` for the core of the hardware threads 0 and 4.

    If the kernel does not show it, each CPU counts as a core of its own.
    """
    path = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")
    try:
        return path.read_text().strip()
    except OSError:
        return f"cpu{cpu}"


def _busy_seconds() -> dict[int, float]:
    """Return the seconds since boot for which each CPU was busy, by CPU number."""
    seconds = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, *later_fields = map(int, fields)
            interrupts_and_steal = sum(later_fields[:3])  # the fields irq, softirq and steal
            ticks = user + nice + system + interrupts_and_steal
            seconds[int(name.removeprefix("cpu"))] = ticks / os.sysconf("SC_CLK_TCK")
    return seconds


def _seconds_of_descendants() -> float:
    """Return the CPU seconds of this process's running descendants, and of the children that these have waited for."""
    ticks = 0
    for process in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            ticks += sum(map(int, stat_fields(process)[11:15]))  # utime, stime, cutime, cstime
    return ticks / os.sysconf("SC_CLK_TCK")
