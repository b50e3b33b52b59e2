"""Monitor one NVIDIA GPU by NVML: its settings, clocks, energy and processes.

NVML is called before and after a phase and between its blocks, never inside a block. A reading that is not available
(an older driver, a MIG slice, missing permissions) is None and raises nothing.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import pynvml

from accelbench.launch.facts import DeviceReading, Energy
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport

POLICIES = {
    "power cap": pynvml.NVML_PERF_POLICY_POWER,
    "thermal slowdown": pynvml.NVML_PERF_POLICY_THERMAL,
    "board limit": pynvml.NVML_PERF_POLICY_BOARD_LIMIT,
    "reliability": pynvml.NVML_PERF_POLICY_RELIABILITY,
}
"""Cumulative counters of time below the requested clocks, by cause."""
REASONS = {
    "power cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "hardware slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
    "thermal slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "hardware thermal slowdown": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "power brake": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
}
"""Bits of the instantaneous reasons, which are finer; each sample counts for its share of the phase."""
CLOCK_REASON_CALLS = (pynvml.nvmlDeviceGetCurrentClocksEventReasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
"""The second is the name of the call in drivers before 535."""
PROCESS_CALLS = (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)

T = TypeVar("T")


@dataclass(frozen=True)
class Counters:
    """Hold the device's cumulative counters."""

    held_back_nanoseconds: Mapping[str, int]
    energy_millijoules: int | None


def query(call: Callable[..., T], *arguments: Any) -> T | None:
    """Call NVML; return None if it does not support the call."""
    try:
        return call(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
        return None


def query_first(calls: Sequence[Callable[..., T]], *arguments: Any) -> T | None:
    """Return the answer of the first call that NVML supports."""
    answers = (query(call, *arguments) for call in calls)
    return next((answer for answer in answers if answer is not None), None)


def first_visible(environment: Mapping[str, str] = os.environ) -> str:
    """Return the first GPU that CUDA may use, by index, UUID or the prefix of a UUID; empty if not restricted."""
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        first = environment.get(name, "").split(",")[0].strip()
        if first.startswith(("GPU-", "MIG-")) or (name.startswith("CUDA") and first.isdecimal()):
            return first
    return ""


@dataclass
class Gpu:
    """Read the GPU that a launch measures on."""

    handle: Any
    physical: Any
    """Handle of the GPU that a MIG slice is part of; otherwise the same as `handle`."""
    earlier_pids: frozenset[int] | None
    """PIDs that used it before this process did; None if unknown."""
    samples: list[int] = field(default_factory=list)
    """Bit masks of the reasons for low clocks, one per sample."""
    clocks_megahertz: list[int] = field(default_factory=list)
    began: Counters | None = None

    @classmethod
    def open(cls, name: str | None = None, pids_by_gpu: Mapping[str, frozenset[int]] | None = None) -> Self | None:
        """Open the GPU of that index or UUID, by default the first visible one; None if NVML does not know it.

        `pids_by_gpu` is what `compute_processes()` returned before the framework initialised the device.
        """
        if not _count_gpus():
            return None
        handle = _find_handle(first_visible() if name is None else name)
        if handle is None:
            return None
        is_slice = bool(query(pynvml.nvmlDeviceIsMigDeviceHandle, handle))
        whole_gpu = query(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle) if is_slice else None
        uuid = query(pynvml.nvmlDeviceGetUUID, handle)
        return cls(handle, whole_gpu or handle, earlier_pids=(pids_by_gpu or {}).get(uuid or ""))

    def settings(self) -> dict[str, str]:
        """Return the settings that stay constant during a run, for the fingerprint, without unknown ones."""
        device = self.physical
        limit = query(pynvml.nvmlDeviceGetEnforcedPowerLimit, device)
        ecc = query(pynvml.nvmlDeviceGetCurrentEccMode, device)
        mig = query(pynvml.nvmlDeviceGetMigMode, device)
        generation = query(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, device)
        width = query(pynvml.nvmlDeviceGetCurrPcieLinkWidth, device)
        clock = query(pynvml.nvmlDeviceGetMaxClockInfo, device, pynvml.NVML_CLOCK_SM)
        settings = {
            "name": query(pynvml.nvmlDeviceGetName, device),
            "uuid": query(pynvml.nvmlDeviceGetUUID, self.handle),
            "driver": query(pynvml.nvmlSystemGetDriverVersion),
            "powerLimitWatts": None if limit is None else f"{limit / 1000:g}",
            "ecc": None if ecc is None else _on_or_off(ecc),
            "mig": None if mig is None else _on_or_off(mig[0]),
            "maxClockMegahertz": None if clock is None else str(clock),
            "link": f"PCIe {generation} x{width}" if generation and width else None,
            "nvlinks": str(_count_nvlinks(device) or "") or None,
        }
        return {name: value for name, value in settings.items() if value}

    def begin(self) -> None:
        """Begin a timed phase: drop earlier samples, and read the counters."""
        self.samples.clear()
        self.clocks_megahertz.clear()
        self.began = self._counters()

    def sample(self) -> None:
        """Sample the clock and the reasons for it, between blocks."""
        reasons = query_first(CLOCK_REASON_CALLS, self.physical)
        clock = query(pynvml.nvmlDeviceGetClockInfo, self.physical, pynvml.NVML_CLOCK_SM)
        self.samples += [] if reasons is None else [reasons]
        self.clocks_megahertz += [] if clock is None else [clock]

    def end(self, seconds: float) -> DeviceReport:
        """Return clocks, energy and other processes in the `seconds` since `begin`, and what held the clocks back."""
        began, ended = self.began, self._counters()
        assert began is not None  # noqa: S101 - begin comes first
        self.sample()
        held_back = {
            why: (ended.held_back_nanoseconds[why] - began.held_back_nanoseconds[why]) / 1e9
            for why in ended.held_back_nanoseconds.keys() & began.held_back_nanoseconds.keys()
        }
        for why, bit in REASONS.items():
            if self.samples:
                share = sum(bool(sample & bit) for sample in self.samples) / len(self.samples)
                # A cause can have a counter, samples or both: the larger counts.
                held_back[why] = max(held_back.get(why, 0.0), share * seconds)
        ended_mj, began_mj = ended.energy_millijoules, began.energy_millijoules
        reading = DeviceReading(
            source="NVML",
            seconds=seconds,
            held_back_seconds=held_back if held_back or self.samples else None,
            other_processes=count_others(self.earlier_pids, _processes(self.handle), os.getpid()),
            clock_megahertz=[min(self.clocks_megahertz), max(self.clocks_megahertz)] if self.clocks_megahertz else None,
        )
        joules = None if ended_mj is None or began_mj is None else (ended_mj - began_mj) / 1000
        return DeviceReport(reading, Energy(joules=joules, seconds=seconds, scope="device") if joules else None)

    def _counters(self) -> Counters:
        """Read the counters that NVML supports."""
        held_back = {
            why: status.violationTime
            for why, policy in POLICIES.items()
            if (status := query(pynvml.nvmlDeviceGetViolationStatus, self.physical, policy)) is not None
        }
        # The energy counter covers the whole GPU, so a MIG slice has none.
        is_whole_gpu = self.physical is self.handle
        energy = query(pynvml.nvmlDeviceGetTotalEnergyConsumption, self.physical) if is_whole_gpu else None
        return Counters(held_back_nanoseconds=held_back, energy_millijoules=energy)


class NvidiaMonitor(DeviceMonitor):
    """Monitor the GPU that a launch measures on; report nothing without NVML."""

    _before: Mapping[str, frozenset[int]] | None = None
    _gpu: Gpu | None = None

    @property
    def watches_blocks(self) -> bool:
        """Return True if there is a GPU, because NVML reports reasons for low clocks only at the moment of a call."""
        return self._gpu is not None

    def prepare(self) -> None:
        """Read which processes compute on which GPU."""
        self._before = compute_processes()

    def identify(self, name: str | None) -> Mapping[str, str]:
        """Return the GPU's settings; empty without NVML."""
        self._gpu = Gpu.open(name, self._before)
        return self._gpu.settings() if self._gpu else {}

    def begin(self) -> None:
        """Begin a timed phase; do nothing without NVML."""
        if self._gpu:
            self._gpu.begin()

    def sample(self) -> None:
        """Sample the clock and the reasons for it; do nothing without NVML."""
        if self._gpu:
            self._gpu.sample()

    def end(self, seconds: float) -> DeviceReport:
        """Return clocks, energy and other processes in the `seconds` since `begin`; nothing without NVML."""
        return self._gpu.end(seconds) if self._gpu else DeviceReport()


def compute_processes() -> dict[str, frozenset[int]]:
    """Return the PIDs that compute on each GPU, by UUID; call it before this process computes."""
    running = {}
    for index in range(_count_gpus()):
        handle = query(pynvml.nvmlDeviceGetHandleByIndex, index)
        uuid = query(pynvml.nvmlDeviceGetUUID, handle)
        processes = _processes(handle)
        if uuid is not None and processes is not None:
            running[uuid] = processes
    return running


def count_others(before: frozenset[int] | None, now: frozenset[int] | None, own: int) -> int | None:
    """Count the other processes on the device; None if unknown.

    In a container NVML reports the host's PIDs, so `own` does not appear: then one of the PIDs that are new since
    `before` is this process. If there is no new PID, NVML hides processes.
    """
    if before is None or now is None:
        return None
    if own in now:
        return len(now - {own})
    return len(now) - 1 if now - before else None


def _count_gpus() -> int:
    """Count the GPUs that NVML shows; 0 without NVML. It may be initialised repeatedly."""
    query(pynvml.nvmlInit)
    return query(pynvml.nvmlDeviceGetCount) or 0


def _find_handle(name: str) -> Any:
    """Find a GPU's handle. An index is CUDA's, which equals NVML's if all GPUs are of one model."""
    if name.startswith(("GPU-", "MIG-")):
        exact = query(pynvml.nvmlDeviceGetHandleByUUID, name)
        return exact if exact is not None else _find_by_prefix(name)
    return query(pynvml.nvmlDeviceGetHandleByIndex, int(name) if name.isdecimal() else 0)


def _find_by_prefix(name: str) -> Any:
    """Find a GPU by the beginning of its UUID, which CUDA accepts."""
    for index in range(_count_gpus()):
        handle = query(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None and str(query(pynvml.nvmlDeviceGetUUID, handle)).startswith(name):
            return handle
    return None


def _processes(handle: Any) -> frozenset[int] | None:
    """Return the PIDs that compute on a GPU; None if NVML does not report them."""
    running: Sequence[Any] | None = query_first(PROCESS_CALLS, handle)
    return None if running is None else frozenset(process.pid for process in running)


def _count_nvlinks(device: Any) -> int:
    """Count the active NVLinks."""
    return sum(
        query(pynvml.nvmlDeviceGetNvLinkState, device, link) == pynvml.NVML_FEATURE_ENABLED
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
    )


def _on_or_off(state: int) -> str:
    return "on" if state else "off"
