"""Monitor the device and the machine while a launch measures."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from accelbench.launch.facts import DeviceReading, Energy, EnergyScope, Idle, Neighbours, Process, Throttling
from accelbench_runner.clock import Clock
from accelbench_runner.devices import cpu, processes
from accelbench_runner.devices.cpu import Processors

EVICTION_BYTES = 256 * 1024 * 1024
"""Bytes to write in order to evict a device's caches; no device has larger caches."""


class DeviceReport(NamedTuple):
    """Hold a monitor's report of one timed phase; a field is None if the monitor does not know it."""

    reading: DeviceReading | None = None
    energy: Energy | None = None
    idle: Idle | None = None


def measured_energy(joules: float | None, seconds: float, scope: EnergyScope) -> Energy | None:
    """Return the `Energy` fact of a phase that took `seconds`; None if its energy was not measured."""
    if joules is None or joules <= 0:  # every device draws power, so with 0 J the counter was not updated
        return None
    return Energy(joules=joules, seconds=seconds, scope=scope)


class DeviceMonitor:
    """Monitor one device while a launch measures on it. By default, report nothing.

    A launch calls `prepare`, `identify`, and for each timed phase `begin`, `sample` between blocks, and `end`. A
    monitor runs nothing on the device; only the framework does.
    """

    def __init__(self, clock: Clock, processors: Processors) -> None:
        self.clock, self.processors = clock, processors

    # Identity.
    def model(self) -> str:
        """Return the device's model; empty if unknown."""
        return ""

    def prepare(self) -> None:
        """Read which processes use the device, before this one does; do nothing by default."""

    def identify(self, name: str | None) -> Mapping[str, str]:  # noqa: ARG002 - an override may read it
        """Find the device that the framework uses; return its settings for the fingerprint, by default none.

        `name` is the device's index or UUID, as the framework reports it; None stands for the first visible device.
        """
        return {}

    # Memory and caches.
    def peak_bytes(self, host_bytes: int) -> int | None:  # noqa: ARG002 - the CPUs' monitor returns it
        """Return the program's peak memory on the device, None if unknown; `host_bytes` is its peak on the host."""
        return None

    def room_bytes(self) -> int | None:
        """Return the bytes that this process may still allocate on the device; None if unknown."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the bytes of the device's last-level cache; None if unknown."""
        return None

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:
        """Return a function that evicts the device's caches, by default by `overwrite`; None if that returns None.

        `overwrite(size)` returns a function that writes `size` bytes of the device's memory, or None.
        """
        return overwrite(EVICTION_BYTES)

    # Clocks, neighbours and energy.
    def begin(self) -> None:
        """Begin a timed phase; do nothing by default."""

    @property
    def watches_blocks(self) -> bool:
        """Return True if `sample` has to be called between timed blocks."""
        return False

    def sample(self) -> None:
        """Sample the device between blocks; do nothing by default."""

    def end(self, seconds: float) -> DeviceReport:  # noqa: ARG002 - an override may read it
        """End the phase since `begin`, which took `seconds`, and return what was measured; by default nothing."""
        return DeviceReport()


class Watch:
    """Read the machine and the device before and after a timed phase, and return the differences as facts."""

    def __init__(self, monitor: DeviceMonitor, clock: Clock, processors: Processors = cpu) -> None:
        """Watch the device by `monitor`, and the CPUs by `processors`, during phases that `clock` times."""
        self._monitor = monitor
        self._clock = clock
        self._processors = processors

    def begin(self) -> None:
        """Read the counters of the machine and the device, just before a timed phase."""
        # The counters that are read quickest come last, so that they cover little more than the phase.
        self._processes_before = self._processors.other_processes()
        self._monitor.begin()
        self._contention_before, self._usage_before = self._processors.contention(), self._processors.usage()
        self._began = self._clock.seconds()

    def end(self) -> dict[str, object]:
        """Return facts about the machine and the device during the phase since `begin`, by field of `Facts`.

        Each fact is a value, or a function that computes the value: if one function raises, the other facts are still
        sent (`Reporter.send_facts`).
        """
        seconds = self._clock.seconds() - self._began
        # The counters that are read quickest come first, close to the phase's end.
        usage, contention = self._processors.usage(), self._processors.contention()
        device = self._monitor.end(seconds)
        busiest = processes.busiest(self._processes_before, self._processors.other_processes())
        return {
            "idle": device.idle,
            "throttling": lambda: Throttling(**contention.since(self._contention_before)._asdict()),
            "neighbours": lambda: Neighbours(
                busy_seconds=usage.others_seconds_since(self._usage_before),
                offered_seconds=seconds * len(os.sched_getaffinity(0)),
                processes=[Process(**process._asdict()) for process in busiest],
            ),
            "device_reading": device.reading,
            "energy": device.energy,
        }
