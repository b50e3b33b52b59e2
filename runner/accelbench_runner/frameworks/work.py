"""What an adapter makes of a program, and a launch times: a call, its state and its batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class DeviceEvents(Protocol):
    """The device's own clock beside the host's: marks in its queue, before the first call and after the last."""

    def start(self) -> None:
        """Marks where the device is."""
        ...

    def stop(self) -> None:
        """Marks where it will be."""
        ...

    def compare(self, host_seconds: float) -> None:
        """Told once the device is past both marks what the host made of it."""
        ...


def _unchecked(_result: Any) -> None:
    """Whatever a call returned will do."""


@dataclass(frozen=True)
class Work:
    """What is timed. `call` takes a state and the batches and returns the next state and everything it computed."""

    fresh: Callable[[], Any]
    call: Callable[[Any, Any], tuple[Any, Any]]
    batches: Any
    synchronise: Callable[[Any], None]
    """Returns when everything in its argument has been computed."""
    units: int
    """Units of work in one call."""
    check: Callable[[Any], None] = _unchecked
    """Told what a call of one step returned; raises InvalidWorkloadError where that is no state with an out."""
    events: DeviceEvents | None = None
    """Where the device has some that can be timed."""
    evict: Callable[[], None] | None = None
    """Empties the caches before the clock starts, for work that asks for cold data."""
