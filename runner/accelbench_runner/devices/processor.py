"""Monitor the processors as the measured device: their caches, and their energy by RAPL."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from accelbench.launch.facts import Energy, Idle
from accelbench.machine import cgroup
from accelbench_runner.devices import cpu
from accelbench_runner.devices.cpu import Usage
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport

SYSFS_CPU = Path("/sys/devices/system/cpu")
MAXIMUM_EVICTION_BYTES = 256 * 1024 * 1024
"""Maximum bytes to walk: a virtual machine in a cloud reports a cache that the whole host shares."""
LINE_BYTES = 64
UNITS = {"K": 1024, "M": 1024**2, "G": 1024**3}
POWERCAP = Path("/sys/class/powercap")


@dataclass(frozen=True)
class Package:
    """Hold a RAPL counter of one processor package, which wraps around at its range."""

    microjoules: int
    range_microjoules: int


class ProcessorMonitor(DeviceMonitor):
    """Read what the kernel reports of the processors; `Watch` covers other processes, whatever the device."""

    _packages: dict[str, Package]
    _usage_before: Usage

    def model(self) -> str:
        """Return the kernel's name of the processor."""
        return cpu.model()

    def peak_bytes(self, host_bytes: int) -> int | None:
        """Return the host's peak, because its memory is the device's."""
        return host_bytes

    def room_bytes(self) -> int | None:
        """Return the bytes that the control group's limit leaves; None without a limit."""
        limit = cgroup.memory_limit(cgroup.find("memory"))
        return None if limit is None else max(0, limit - cpu.held_bytes())

    def cache_bytes(self) -> int | None:
        """Return the size of the last-level cache; None if the kernel does not report it."""
        return last_level_bytes()

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:  # noqa: ARG002
        """Return a call that walks through twice the last-level cache, which works for every framework."""
        return cache_evictor(last_level_bytes())

    def begin(self) -> None:
        """Begin a timed phase: read the energy counters and the use of the processors."""
        self._packages = read_packages()
        self._usage_before = self.processors.usage()

    def end(self, seconds: float) -> DeviceReport:
        """Return the energy of whole processor packages, and how long the process was busy."""
        usage = self.processors.usage()
        joules = joules_between(self._packages, read_packages())
        energy = Energy(joules=joules, seconds=seconds, scope="processors") if joules else None
        return DeviceReport(energy=energy, idle=self._idle(seconds, usage))

    def _idle(self, seconds: float, usage: Usage) -> Idle | None:
        """Return how long the process ran or waited for a processor; None if the kernel does not report waiting."""
        if usage.waited_seconds is None or self._usage_before.waited_seconds is None:
            return None
        # Threads that have exited are missing from the second reading.
        waited = max(0.0, usage.waited_seconds - self._usage_before.waited_seconds)
        return Idle(seconds=seconds, busy_seconds=usage.own_seconds - self._usage_before.own_seconds + waited)


def last_level_bytes(root: Path = SYSFS_CPU) -> int | None:
    """Return the size of the first processor's last-level data cache; None if the kernel does not report it."""
    sizes: dict[int, int] = {}
    for index in (root / "cpu0/cache").glob("index[0-9]*"):
        try:
            if (index / "type").read_text().strip() != "Instruction":
                sizes[int((index / "level").read_text())] = _parse_size((index / "size").read_text().strip())
        except (OSError, ValueError):
            continue
    return sizes[max(sizes)] if sizes else None


def _parse_size(text: str) -> int:
    """Return the bytes of a size such as `32K`."""
    unit = UNITS.get(text[-1:])
    return int(text[:-1]) * unit if unit else int(text)


def cache_evictor(cache_bytes: int | None) -> Callable[[], None] | None:
    """Return a call that walks twice the cache's size and so evicts it; None if the size is unknown or too large."""
    if cache_bytes is None or 2 * cache_bytes > MAXIMUM_EVICTION_BYTES:
        return None
    buffer = np.zeros(2 * cache_bytes, dtype=np.uint8)

    def evict() -> None:
        buffer[::LINE_BYTES] += 1

    return evict


def read_packages(root: Path = POWERCAP) -> dict[str, Package]:
    """Read the energy counters of whole packages, by domain; empty if the kernel shows them to root only."""
    packages = {}
    for directory in sorted(root.glob("intel-rapl:*")):  # AMD's domains have the same prefix
        try:
            if (directory / "name").read_text().startswith("package"):
                packages[directory.name] = Package(
                    microjoules=int((directory / "energy_uj").read_text()),
                    range_microjoules=int((directory / "max_energy_range_uj").read_text()),
                )
        except (OSError, ValueError):
            continue
    return packages


def joules_between(before: dict[str, Package], after: dict[str, Package]) -> float | None:
    """Return the energy of all packages between two readings, allowing for one wrap-around; None without packages."""
    microjoules = [
        (after[name].microjoules - package.microjoules) % (package.range_microjoules + 1)
        for name, package in before.items()
        if name in after
    ]
    return sum(microjoules) / 1e6 if microjoules else None
