"""What a launch asks of the device that it measures on."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from accelbench.launch.facts import DeviceReading, Energy, Idle
from accelbench_runner.clock import Clock
from accelbench_runner.devices.cpu import Processors

MOST_CACHE_BYTES = 256 * 1024 * 1024
"""Written to empty the caches of a device: more than any has."""


class DeviceReport(NamedTuple):
    """What happened to a device while something was measured; None for what it does not tell."""

    reading: DeviceReading | None = None
    energy: Energy | None = None
    idle: Idle | None = None


class DeviceMonitor:
    """One device while a launch measures on it. As it stands, that of a device which tells nothing.

    In order: made, `arrive`, `awake`, then `begin`, `sample` between blocks, and `end` around each phase. It runs
    nothing on the device itself: that is the framework's part.
    """

    def __init__(self, clock: Clock, processors: Processors) -> None:
        self.clock, self.processors = clock, processors

    # Identity.
    def model(self) -> str:
        """The device's name where frameworks do not know one."""
        return ""

    def arrive(self) -> None:
        """Before the framework wakes the device: who is there."""

    def awake(self, name: str | None) -> Mapping[str, str]:  # noqa: ARG002 - who tells several apart looks at it
        """The device is awake, and is `name` to the framework; returns what stays as it is, for the fingerprint."""
        return {}

    # Memory and caches.
    def peak_bytes(self, host_bytes: int) -> int | None:  # noqa: ARG002 - of a processor it is the answer
        """The most that the program took, where its framework does not say; of the host's memory, `host_bytes`."""
        return None

    def room_bytes(self) -> int | None:
        """Memory that is left for this process; None: no limit is known."""
        return None

    def cache_bytes(self) -> int | None:
        """Of the last cache before memory, where its framework does not say."""
        return None

    def evictor(self, overwrite: Callable[[int], Callable[[], None] | None]) -> Callable[[], None] | None:
        """A call that empties the caches; None where that cannot be done.

        `overwrite` makes one of the framework's that writes so many bytes of the device's memory.
        """
        return overwrite(MOST_CACHE_BYTES)

    # Clocks, neighbours and energy.
    def begin(self) -> None:
        """What is measured begins."""

    @property
    def watches_blocks(self) -> bool:
        """Whether `sample` is worth a call between blocks."""
        return False

    def sample(self) -> None:
        """Between blocks."""

    def end(self, seconds: float) -> DeviceReport:  # noqa: ARG002 - who counts by time looks at it
        """What happened since `begin`, `seconds` ago."""
        return DeviceReport()
