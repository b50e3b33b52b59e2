"""What accelbench has to know of a kind of device without touching one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from accelbench.extensions import load

MEBIBYTE = 1024**2


@dataclass(frozen=True)
class Platform:
    """A kind of device that frameworks compute on."""

    name: str
    """As in a profile."""
    title: str
    """For people, after `the`."""
    monitor: str
    """`module:class` of its `DeviceMonitor` (`accelbench_runner.devices.monitor`); launches alone load it."""
    own_users: bool = True
    """It has users, clocks and memory of its own, beside the processors'. Where its monitor tells nothing of them, what
    others did to a launch is not known."""
    files: tuple[str, ...] = ()
    """One of them is there where its driver is loaded; empty: there is no saying."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """What frameworks call it that do not list it by name (`Framework.platforms`)."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Precisions that it does not have, each with why."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Environment variables that say where its driver keeps what it compiles, each with a name for that folder."""
    largest_product: int = 8192
    """Rows of the largest matrix product by which its limits are measured."""
    triad_bytes: int = 1024 * MEBIBYTE
    """Of both arrays of the stream triad together, at most."""

    def load_monitor(self) -> Any:
        """The monitor's class."""
        return load(self.monitor)
