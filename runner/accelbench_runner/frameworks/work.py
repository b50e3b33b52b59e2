"""Define the unit that an adapter prepares and a launch times: a call, its state and its batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class DeviceEvents(Protocol):
    """Time a block by the device's own clock, with events before its first call and after its last."""

    def start(self) -> None:
        """Record the first event in the device's queue."""
        ...

    def stop(self) -> None:
        """Record the second event in the device's queue."""
        ...

    def compare(self, host_seconds: float) -> None:
        """Compare the host's time of the block with the device's, after synchronisation."""
        ...


def _accept(_result: Any) -> None:
    pass


def _same(out: Any) -> Any:
    return out


@dataclass(frozen=True)
class Work:
    """Hold a call and its inputs. `call` takes a state and the batches; it returns the next state and the outs."""

    fresh: Callable[[], Any]
    """Returns a fresh initial state."""
    call: Callable[[Any, Any], tuple[Any, Any]]
    batches: Any
    synchronise: Callable[[Any], None]
    """Waits until everything in its argument is computed."""
    units: int
    """Units of work in one call."""
    last: Callable[[Any], Any] = _same
    """Takes the last step's out from the outs of a call."""
    check: Callable[[Any], None] = _accept
    """Raises InvalidWorkloadError if the result of a single step is not a state and an out."""
    events: DeviceEvents | None = None
    """None if the device has no events to time by."""
    evict: Callable[[], None] | None = None
    """Empties the caches before the clock starts, for work on cold data."""
