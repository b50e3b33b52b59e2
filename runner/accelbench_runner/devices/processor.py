"""Monitor the CPUs as the measured device: their caches, and their energy by RAPL, the energy counters of the CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelbench.launch.facts import Idle
from accelbench.machine import cgroup
from accelbench_runner.devices import cpu
from accelbench_runner.devices.cpu import Usage
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport, measured_energy

SYSFS_CPU = Path("/sys/devices/system/cpu")
MAXIMUM_EVICTION_BYTES = 256 * 1024 * 1024
"""Maximum bytes to write to evict the cache: a virtual machine can report a cache that its whole host shares."""
LINE_BYTES = 64
"""Bytes of a cache line: writing one byte of each line is enough to load the line."""
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Package:
    """Hold the RAPL energy counter of one CPU package. After `range_microjoules` the counter starts again at 0."""

    microjoules: int
    range_microjoules: int


class ProcessorMonitor(DeviceMonitor):
    """Monitor the CPUs by what the kernel reports. `Watch` reads other processes, as for every kind of device."""

    _packages: dict[str, Package]
    _usage_before: Usage

    def model(self) -> str:
        """Return the CPU's model name, or else its architecture."""
        return cpu.model()

    def peak_bytes(self, host_bytes: int) -> int | None:
        """Return `host_bytes`: CPUs use the host's memory."""
        return host_bytes

    def room_bytes(self) -> int | None:
        """Return the bytes that this process may still allocate under its control group's limit; None without one."""
        limit = cgroup.memory_limit(cgroup.find("memory"))
        return None if limit is None else max(0, limit - cpu.resident_bytes())

    def cache_bytes(self) -> int | None:
        """Return the bytes of the last-level cache; None if the kernel lists no caches."""
        return last_level_bytes()

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:  # noqa: ARG002
        """Return a function that evicts the last-level cache; None if the cache's size is unknown or too large.

        The function writes by NumPy, so the framework's `overwrite` is not needed.
        """
        return cache_evictor(last_level_bytes())

    def begin(self) -> None:
        """Begin a timed phase: read the CPUs' energy counters, and the CPU time used so far."""
        self._packages = read_packages()
        self._usage_before = self.processors.usage()

    def end(self, seconds: float) -> DeviceReport:
        """End the timed phase, which took `seconds`: return the energy used, and for how long threads ran."""
        usage = self.processors.usage()
        joules = joules_between(self._packages, read_packages())
        return DeviceReport(energy=measured_energy(joules, seconds, "processors"), idle=self._idle_fact(seconds, usage))

    def _idle_fact(self, seconds: float, usage: Usage) -> Idle | None:
        """Return for how many of the phase's seconds threads of this process ran; None if that is unknown.

        The time for which threads waited for a CPU is left out, as neither busy nor idle: on a crowded machine, a
        program that sleeps also waits for a CPU each time that it wakes up.
        """
        if usage.waited_seconds is None or self._usage_before.waited_seconds is None:
            return None  # the kernel does not count waiting
        # Threads that have exited are missing from the second reading, so the difference can be negative.
        waited_seconds = max(0.0, usage.waited_seconds - self._usage_before.waited_seconds)
        ran_seconds = usage.process_seconds - self._usage_before.process_seconds
        # Several threads may wait at once, so the waits of all of them can exceed the phase.
        unobstructed_seconds = max(seconds - waited_seconds, ran_seconds)
        if not unobstructed_seconds:
            return None  # threads only waited
        return Idle(seconds=unobstructed_seconds, busy_seconds=ran_seconds)


def last_level_bytes(root: Path = SYSFS_CPU) -> int | None:
    """Return the size in bytes of the first CPU's last-level data cache; None if the kernel lists no caches."""
    bytes_by_level: dict[int, int] = {}
    for index in (root / "cpu0/cache").glob("index[0-9]*"):
        try:
            if (index / "type").read_text().strip() != "Instruction":
                level = int((index / "level").read_text())
                bytes_by_level[level] = _parse_size((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return bytes_by_level[max(bytes_by_level)] if bytes_by_level else None


def _parse_size(text: str) -> int:
    """Return the bytes of a size such as `32K`."""
    unit = UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)


def cache_evictor(cache_bytes: int | None) -> Callable[[], None] | None:
    """Return a function that evicts a cache, by writing to an array of twice the cache's size.

    Returns None if the cache's size is unknown or too large.
    """
    if cache_bytes is None or 2 * cache_bytes > MAXIMUM_EVICTION_BYTES:
        return None
    buffer = np.zeros(2 * cache_bytes, dtype=np.uint8)

    def evict() -> None:
        """Write one byte of each cache line of the array, which loads the whole line."""
        buffer[::LINE_BYTES] += 1

    return evict


def read_packages(root: Path = POWERCAP) -> dict[str, Package]:
    """Read the energy counter of each CPU package, by the name of its RAPL domain.

    Counters that this process may not read are left out.
    """
    packages = {}
    for directory in sorted(root.glob("intel-rapl:*")):  # AMD's domains have the same prefix
        try:
            if (directory / "name").read_text().startswith("package"):
                packages[directory.name] = Package(
                    microjoules=int((directory / "energy_uj").read_text()),
                    range_microjoules=int((directory / "max_energy_range_uj").read_text()),
                )
        except (OSError, ValueError):  # most kernels let only root read the counters
            continue
    return packages


def joules_between(before: dict[str, Package], after: dict[str, Package]) -> float | None:
    """Return the joules that all CPU packages used between two readings; None if there are no counters."""
    # The remainder is right even if a counter reached its maximum and started again at 0.
    microjoules = [
        (after[name].microjoules - package.microjoules) % (package.range_microjoules + 1)
        for name, package in before.items()
        if name in after
    ]
    return sum(microjoules) / 1e6 if microjoules else None
