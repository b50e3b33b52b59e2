# ruff: noqa: ARG002 - arguments are the interface's
"""Readings that a test sets."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from accelbench.launch.facts import DeviceReading, Energy
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport


class ChipMonitor(DeviceMonitor):
    """Tells what the file says whose path is in the environment."""

    def model(self) -> str:
        return "Chip 1000"

    def identify(self, name: str | None) -> Mapping[str, str]:
        return {"serial": self._readings()["serial"]}

    def peak_bytes(self, host_bytes: int) -> int:
        return int(self._readings()["peakBytes"])

    def cache_bytes(self) -> int:
        return 1024**2

    def end(self, seconds: float) -> DeviceReport:
        readings = self._readings()
        hot = Path(readings["hot"])
        held_back = {"too hot": 0.5 * seconds if hot.exists() else 0.0}
        hot.unlink(missing_ok=True)
        return DeviceReport(
            DeviceReading(
                source="the chip", seconds=seconds, held_back_seconds=held_back, other_processes=readings["users"]
            ),
            Energy(joules=readings["watts"] * seconds, seconds=seconds, scope="device"),
        )

    def _readings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(Path(os.environ["CHIP_READINGS"]).read_text())
        return found
