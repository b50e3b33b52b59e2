"""Play a GPU on which JAX and PyTorch compute: the processors, under another name.

A stage copies this module to where accelbench finds it by an entry point, as it finds anybody's platform.
"""

import os
from collections.abc import Mapping

from accelbench.platforms import Platform
from accelbench_runner.devices.monitor import DeviceMonitor

PLATFORM = Platform(
    name="example.com/gpu",
    title="played GPU",
    monitor="played_device:PlayedMonitor",
    backends={"jax": "cpu", "pytorch": "cpu", "numpy": "cpu"},
    largest_product=256,
    triad_bytes=8 * 1024**2,
)


class PlayedMonitor(DeviceMonitor):
    """Report the name that the environment gives the device, and nothing of its clocks and users."""

    def model(self) -> str:
        """Return the device's model."""
        return os.environ.get("PLAYED_DEVICE", "Played GPU")

    def identify(self, name: str | None) -> Mapping[str, str]:  # noqa: ARG002 - there is one device
        """Return the device's settings."""
        return {"name": self.model(), "driver": "1.0"}
