"""Which processors a case runs on: as many as the container may use, chosen once, the same for every launch.

Affinity decides, because it is the one thing that every thread pool follows (XLA's ignores OMP_NUM_THREADS); the
variables that OpenMP and BLAS libraries read are set to the same number. Where more processors are in sight than the
quota pays for, idle ones are taken, and one of each core before a second: two pods on a node must not both settle on
the first.
"""

import os
import random
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from accelbench.machine import cgroup

OBSERVATION_SECONDS = 0.2
BUSY_SHARE = 0.2
"""A processor that was busy for more than this share is taken only when idle ones are used up."""

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")


def allowed_threads(available: int, quota: float | None, wanted: int | None = None) -> int:
    """Whole processors within the quota and not more than are `wanted`, at least one.

    `available` is the size of the affinity mask.
    """
    return max(1, min([available, *(int(limit) for limit in (quota, wanted) if limit is not None)]))


def settle(wanted: int | None = None) -> tuple[int, ...]:
    """Bind this process, and with it every child it starts, to the case's processors; returns them."""
    available = os.sched_getaffinity(0)
    threads = allowed_threads(len(available), cgroup.processor_quota(cgroup.find("cpu")), wanted)
    if threads < len(available):
        before = _busy_ticks()
        time.sleep(OBSERVATION_SECONDS)
        after = _busy_ticks()
        ticks = OBSERVATION_SECONDS * os.sysconf("SC_CLK_TCK")
        busy = {number: (after.get(number, 0) - before.get(number, 0)) / ticks for number in available}
        chosen = choose(busy, threads, siblings={number: _core(number) for number in available}, rng=random.Random())  # noqa: S311 - spreads pods over a node
        os.sched_setaffinity(0, chosen)
    return tuple(sorted(os.sched_getaffinity(0)))


def choose(
    busy: Mapping[int, float], count: int, *, siblings: Mapping[int, str], rng: random.Random
) -> Collection[int]:
    """`count` processors: idle before busy, then a new core before a used one, then by chance."""
    numbers: Sequence[int] = rng.sample(sorted(busy), len(busy))
    chosen: list[int] = []
    while len(chosen) < count:
        used = {siblings[number] for number in chosen}
        rest = (number for number in numbers if number not in chosen)
        chosen.append(min(rest, key=lambda number: (busy[number] > BUSY_SHARE, siblings[number] in used)))
    return chosen


def thread_environment(threads: int) -> dict[str, str]:
    """The variables that tell OpenMP and BLAS libraries the number of threads."""
    return dict.fromkeys(THREAD_VARIABLES, str(threads))


def _core(number: int) -> str:
    """What the hardware threads of one core have in common; a processor that says nothing is a core of its own."""
    path = Path(f"/sys/devices/system/cpu/cpu{number}/topology/thread_siblings_list")
    try:
        return path.read_text().strip()
    except OSError:
        return f"cpu{number}"


def _busy_ticks() -> dict[int, int]:
    """Ticks that each processor has been busy since boot, by /proc/stat: all but idle and waiting for disks."""
    ticks = {}
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name.startswith("cpu") and name != "cpu":
            user, nice, system, _idle, _iowait, *rest = map(int, fields)
            ticks[int(name.removeprefix("cpu"))] = user + nice + system + sum(rest[:3])
    return ticks
