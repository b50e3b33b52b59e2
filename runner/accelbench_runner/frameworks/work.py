"""Define what an adapter prepares and a launch times: a call, its state and its batches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol


class DeviceEvents(Protocol):
    """Time a block by the device's clock, with one event before its first call and one after its last."""

    def start(self) -> None:
        """Queue the event that starts the block."""
        ...

    def stop(self) -> None:
        """Queue the event that ends the block."""
        ...

    def compare(self, host_seconds: float) -> None:
        """Divide the block's seconds on the host's clock by those between the events, and store the ratio."""
        ...


def _accept_any_result(_result: Any) -> None:
    pass


def _return_unchanged(out: Any) -> Any:
    return out


@dataclass(frozen=True)
class Work:
    """Hold a call and its inputs. `call` takes a state and the batches, and returns the next state and the outs.

    An out is what a step returns besides the next state.
    """

    fresh: Callable[[], Any]
    """Returns an initial state that no call has changed."""
    call: Callable[[Any, Any], tuple[Any, Any]]
    batches: Any
    synchronise: Callable[[Any], None]
    """Waits until everything in its argument is computed."""
    units: int
    """Units of work in one call."""
    last_out: Callable[[Any], Any] = _return_unchanged
    """Returns the last step's out, from the outs of a call."""
    check: Callable[[Any], None] = _accept_any_result
    """Takes the result of one step; raises InvalidWorkloadError if that is not a state and an out."""
    events: DeviceEvents | None = None
    """None if the device has no events to time by."""
    evict: Callable[[], None] | None = None
    """Evicts the caches before the clock starts; None if the workload measures with warm caches."""
