"""NVIDIA GPUs by NVML: which device it is, and whether its clocks were held back. Where NVML is missing, nothing."""

from typing import Any, NamedTuple

import pynvml

HELD_BACK = {
    pynvml.nvmlClocksEventReasonSwPowerCap: "power cap",
    pynvml.nvmlClocksThrottleReasonHwSlowdown: "hardware slowdown",
    pynvml.nvmlClocksThrottleReasonHwThermalSlowdown: "hardware thermal slowdown",
    pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown: "power brake",
    pynvml.nvmlClocksEventReasonSwThermalSlowdown: "thermal slowdown",
}


class Reading(NamedTuple):
    """One look at the first visible GPU."""

    name: str
    uuid: str
    driver: str
    sm_clock_megahertz: int
    held_back: tuple[str, ...]
    """Why the clocks are below what was asked for, at this moment."""


def read() -> Reading | None:
    """The first GPU that NVML shows this container; None where there is no NVML to ask."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        device: Any = pynvml.nvmlDeviceGetHandleByIndex(0)
        reasons = pynvml.nvmlDeviceGetCurrentClocksEventReasons(device)
        return Reading(
            name=pynvml.nvmlDeviceGetName(device),
            uuid=pynvml.nvmlDeviceGetUUID(device),
            driver=pynvml.nvmlSystemGetDriverVersion(),
            sm_clock_megahertz=pynvml.nvmlDeviceGetClockInfo(device, pynvml.NVML_CLOCK_SM),
            held_back=tuple(name for bit, name in HELD_BACK.items() if reasons & bit),
        )
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()
