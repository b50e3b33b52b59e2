"""Describe a kind of device without accessing one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from accelbench.extensions import load

MEBIBYTE = 1024**2


@dataclass(frozen=True)
class Platform:
    """Describe a kind of device that frameworks compute on."""

    name: str
    """Name in profiles."""
    title: str
    """Name in messages, after `the`."""
    monitor: str
    """`module:class` of its `DeviceMonitor` (`accelbench_runner.devices.monitor`), which only launches load."""
    own_users: bool = True
    """True if the device has its own users, clocks and memory, apart from the CPU's.

    If its monitor does not report them, the effect of other users on a launch is unknown.
    """
    files: tuple[str, ...] = ()
    """Files of which at least one exists if the driver is loaded; empty if no file shows this."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """The platform's name in each framework that does not have it in `Framework.platforms`, by the framework's name."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Unsupported precisions, each with the reason."""
    default_arithmetic: Literal["float32", "tf32"] = "float32"
    """The least exact arithmetic in which any framework multiplies float32 arrays by default."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Name of the folder of each of the driver's compile caches, by the environment variable for the folder's path."""
    largest_product: int = 8192
    """Maximum number of rows of the matrix products that measure the device's limits."""
    triad_bytes: int = 1024 * MEBIBYTE
    """Maximum size of both arrays of the stream triad together."""

    def load_monitor(self) -> Any:
        """Import and return the monitor's class."""
        return load(self.monitor)
