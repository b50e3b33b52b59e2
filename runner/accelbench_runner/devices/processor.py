"""The processors as the device that is measured."""

from collections.abc import Callable

from accelbench.launch.facts import Energy, Idle
from accelbench.machine import cgroup
from accelbench_runner.devices import cache, cpu, rapl
from accelbench_runner.devices.cpu import Usage
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport


class ProcessorMonitor(DeviceMonitor):
    """What the kernel tells of them. Who else uses them is watched in every launch, whatever its device."""

    _packages: dict[str, rapl.Package]
    _used: Usage

    def model(self) -> str:
        """As the kernel calls it."""
        return cpu.model()

    def peak_bytes(self, host_bytes: int) -> int | None:
        """The host's memory is the device's."""
        return host_bytes

    def room_bytes(self) -> int | None:
        """Of the control group."""
        limit = cgroup.memory_limit(cgroup.find("memory"))
        return None if limit is None else max(0, limit - cpu.held_bytes())

    def cache_bytes(self) -> int | None:
        """As the kernel tells it."""
        return cache.last_level_bytes()

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:  # noqa: ARG002
        """Walks through more than the last level holds, whichever framework computes."""
        return cache.evictor(cache.last_level_bytes())

    def begin(self) -> None:
        """Reads every counter."""
        self._packages = rapl.read()
        self._used = self.processors.usage()

    def end(self, seconds: float) -> DeviceReport:
        """Energy of whole packages, and whether the process waited for nothing."""
        used = self.processors.usage()
        joules = rapl.joules(self._packages, rapl.read())
        energy = Energy(joules=joules, seconds=seconds, scope="processors") if joules else None
        return DeviceReport(energy=energy, idle=self._idle(seconds, used))

    def _idle(self, seconds: float, used: Usage) -> Idle | None:
        if used.waited_seconds is None or self._used.waited_seconds is None:
            return None
        waited = max(0.0, used.waited_seconds - self._used.waited_seconds)  # of threads that ended nothing is told
        return Idle(seconds=seconds, busy_seconds=used.own_seconds - self._used.own_seconds + waited)
