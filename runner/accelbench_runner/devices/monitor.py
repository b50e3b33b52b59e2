"""Monitor the device and the machine while a launch measures."""

import os
from collections.abc import Callable, Mapping
from typing import NamedTuple

from accelbench.launch.fact import NOT_REPORTED
from accelbench.launch.facts import DeviceReading, Energy, Facts, Idle, Neighbours, Process, Throttling
from accelbench_runner.clock import Clock
from accelbench_runner.devices import cpu, processes
from accelbench_runner.devices.cpu import Processors

EVICTION_BYTES = 256 * 1024 * 1024
"""Bytes to write in order to evict a device's caches; no device has larger ones."""


class DeviceReport(NamedTuple):
    """Hold what happened to a device while it was measured; None for what is unknown."""

    reading: DeviceReading | None = None
    energy: Energy | None = None
    idle: Idle | None = None


class DeviceMonitor:
    """Monitor one device while a launch measures on it. By default, report nothing.

    A launch calls `prepare`, `identify`, and for each timed phase `begin`, `sample` between blocks, and `end`. A
    monitor runs nothing on the device: that is the framework's part.
    """

    def __init__(self, clock: Clock, processors: Processors) -> None:
        self.clock, self.processors = clock, processors

    # Identity.
    def model(self) -> str:
        """Return the device's model, for frameworks that cannot report it; empty if unknown."""
        return ""

    def prepare(self) -> None:
        """Take readings before the framework initialises the device, such as the processes that use it."""

    def identify(self, name: str | None) -> Mapping[str, str]:  # noqa: ARG002 - an override may read it
        """Find the initialised device, by the framework's `name` for it; return its settings for the fingerprint."""
        return {}

    # Memory and caches.
    def peak_bytes(self, host_bytes: int) -> int | None:  # noqa: ARG002 - the processors return it
        """Return the program's peak memory on the device, for frameworks that do not report it; None if unknown.

        `host_bytes` is the peak on the host.
        """
        return None

    def room_bytes(self) -> int | None:
        """Return the memory that is left for this process; None if no limit is known."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the size of the last-level cache, for frameworks that do not report it; None if unknown."""
        return None

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:
        """Return a call that evicts the caches; None if not supported.

        `overwrite(size)` returns the framework's call that writes `size` bytes of device memory.
        """
        return overwrite(EVICTION_BYTES)

    # Clocks, neighbours and energy.
    def begin(self) -> None:
        """Begin a timed phase."""

    @property
    def watches_blocks(self) -> bool:
        """Return True if `sample` is to be called between blocks."""
        return False

    def sample(self) -> None:
        """Take a reading between blocks."""

    def end(self, seconds: float) -> DeviceReport:  # noqa: ARG002 - an override may read it
        """End a timed phase; return what happened since `begin`, `seconds` ago."""
        return DeviceReport()


class Watch:
    """Read the machine and the device before and after a timed phase, as facts for validity checks and numbers."""

    def __init__(self, monitor: DeviceMonitor, clock: Clock, processors: Processors = cpu) -> None:
        self._monitor = monitor
        self._clock = clock
        self._processors = processors

    def begin(self) -> None:
        """Read every counter, cheap ones last, so that they cover little more than the phase."""
        self._processes_before = self._processors.other_processes()
        self._monitor.begin()
        self._contention_before, self._usage_before = self._processors.contention(), self._processors.usage()
        self._began = self._clock.seconds()

    def end(self) -> Facts:
        """Return what happened since `begin`, as far as known."""
        seconds = self._clock.seconds() - self._began
        usage, contention = self._processors.usage(), self._processors.contention()
        device = self._monitor.end(seconds)
        busiest = processes.busiest(self._processes_before, self._processors.other_processes())
        return Facts(
            idle=device.idle or NOT_REPORTED,
            throttling=Throttling(**contention.since(self._contention_before)._asdict()),
            neighbours=Neighbours(
                busy_seconds=usage.by_others_since(self._usage_before),
                offered_seconds=seconds * len(os.sched_getaffinity(0)),
                processes=[Process(**process._asdict()) for process in busiest],
            ),
            device_reading=device.reading or NOT_REPORTED,
            energy=device.energy or NOT_REPORTED,
        )
