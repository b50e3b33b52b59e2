"""Describe a kind of device without accessing one."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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
    """True if it has users, clocks and memory apart from the processors'. If its monitor does not report them, the
    effect of other users on a launch is unknown."""
    files: tuple[str, ...] = ()
    """Files of which one exists if the driver is loaded; empty if that cannot be detected."""
    backends: Mapping[str, str] = field(default_factory=dict)
    """Names of it in frameworks that do not list it themselves (`Framework.platforms`)."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Unsupported precisions, each with the reason."""
    caches: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for its driver's compile caches, each with the name of a folder for a launch."""
    largest_product: int = 8192
    """Maximum rows of the matrix products that measure its limits."""
    triad_bytes: int = 1024 * MEBIBYTE
    """Maximum size of both arrays of the stream triad together."""

    def load_monitor(self) -> Any:
        """Import the monitor's class."""
        return load(self.monitor)
