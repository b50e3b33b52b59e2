"""Monitor one NVIDIA GPU by NVML: its settings, clocks, energy and processes.

NVML is called before and after a phase and between its blocks, never inside a block. A reading that is not available
(an older driver, a MIG slice, missing permissions) is None and raises nothing.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

import pynvml

from accelbench.launch.facts import DeviceReading
from accelbench_runner.devices.monitor import DeviceMonitor, DeviceReport, measured_energy

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
"""Bits of NVML's reasons for low clocks at the moment of a sample, by cause."""
CLOCK_REASON_CALLS = (pynvml.nvmlDeviceGetCurrentClocksEventReasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
"""Names of one call; the second is its name in drivers before 535."""
PROCESS_CALLS = (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)

NO_VALUE = {pynvml.NVML_VALUE_NOT_AVAILABLE_ulonglong.value, pynvml.NVML_VALUE_NOT_AVAILABLE_uint.value}
"""Numbers that NVML writes in place of a value that it does not have."""

T = TypeVar("T")


@dataclass(frozen=True)
class Counters:
    """Hold the device's cumulative counters."""

    held_back_nanoseconds: Mapping[str, int]
    """Time for which each cause, a key of `POLICIES`, held the clocks low."""
    energy_millijoules: int | None


def query(call: Callable[..., T], *arguments: Any) -> T | None:
    """Return the result of an NVML call; None if NVML is missing, refuses the call, or has no value."""
    try:
        result = call(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
        return None
    return None if isinstance(result, int) and result in NO_VALUE else result


def query_first(calls: Sequence[Callable[..., T]], *arguments: Any) -> T | None:
    """Return the first result that is not None of these NVML calls; None if there is none.

    The calls are one function of NVML in several versions, which have different names.
    """
    results = (query(call, *arguments) for call in calls)
    return next((result for result in results if result is not None), None)


def first_visible(environment: Mapping[str, str] = os.environ) -> str:
    """Return the index or UUID of the first GPU that the environment makes visible; empty if none is named."""
    for variable in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        gpu = environment.get(variable, "").split(",")[0].strip()
        is_uuid = gpu.startswith(("GPU-", "MIG-"))
        # An index in NVIDIA_VISIBLE_DEVICES does not help: it is the host's, and a container numbers its GPUs itself.
        is_cuda_index = variable == "CUDA_VISIBLE_DEVICES" and gpu.isdecimal()
        if is_uuid or is_cuda_index:
            return gpu
    return ""


@dataclass
class Gpu:
    """Read the GPU that a launch measures on."""

    handle: Any
    physical: Any
    """Handle of the GPU that a MIG slice is part of; otherwise the same as `handle`."""
    earlier_pids: frozenset[int] | None
    """PIDs that computed on the GPU before this process did; None if unknown."""
    reason_masks: list[int] = field(default_factory=list)
    """Bit masks of the reasons for low clocks, one per sample."""
    clocks_megahertz: list[int] = field(default_factory=list)
    """Clock rates, one per sample."""
    began: Counters | None = None
    """Counters when the timed phase began; None before the first phase."""

    @classmethod
    def open(cls, name: str | None = None, pids_by_gpu: Mapping[str, frozenset[int]] | None = None) -> Self | None:
        """Find a GPU by index or UUID, by default the first visible GPU; return None if NVML does not show the GPU.

        `pids_by_gpu` maps a GPU's UUID to the PIDs that computed on the GPU before this process did.
        """
        if not _count_gpus():
            return None
        handle = _find_handle(first_visible() if name is None else name)
        if handle is None:
            return None
        is_slice = bool(query(pynvml.nvmlDeviceIsMigDeviceHandle, handle))
        whole_gpu = query(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle) if is_slice else None
        uuid = query(pynvml.nvmlDeviceGetUUID, handle) or ""  # `pids_by_gpu` has no empty UUID
        earlier_pids = (pids_by_gpu or {}).get(uuid)
        return cls(handle=handle, physical=whole_gpu or handle, earlier_pids=earlier_pids)

    def settings(self) -> dict[str, str]:
        """Return the GPU's settings for the fingerprint, as text by name, without those that NVML does not report."""
        device = self.physical
        limit_milliwatts = query(pynvml.nvmlDeviceGetEnforcedPowerLimit, device)
        ecc_mode = query(pynvml.nvmlDeviceGetCurrentEccMode, device)
        mig_modes = query(pynvml.nvmlDeviceGetMigMode, device)  # the current mode, and the one after a reset
        pcie_generation = query(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, device)
        pcie_lanes = query(pynvml.nvmlDeviceGetCurrPcieLinkWidth, device)
        maximum_megahertz = query(pynvml.nvmlDeviceGetMaxClockInfo, device, pynvml.NVML_CLOCK_SM)
        nvlinks = _count_nvlinks(device)
        settings = {
            "name": query(pynvml.nvmlDeviceGetName, device),
            "uuid": query(pynvml.nvmlDeviceGetUUID, self.handle),  # of the MIG slice, if the GPU is one
            "driver": query(pynvml.nvmlSystemGetDriverVersion),
            "powerLimitWatts": None if limit_milliwatts is None else f"{limit_milliwatts / 1000:g}",
            "ecc": None if ecc_mode is None else _on_or_off(ecc_mode),
            "mig": None if mig_modes is None else _on_or_off(mig_modes[0]),
            "maxClockMegahertz": None if maximum_megahertz is None else str(maximum_megahertz),
            "link": f"PCIe {pcie_generation} x{pcie_lanes}" if pcie_generation and pcie_lanes else None,
            "nvlinks": str(nvlinks) if nvlinks else None,
        }
        return {name: value for name, value in settings.items() if value}

    def begin(self) -> None:
        """Begin a timed phase: drop the samples of earlier phases, and read the cumulative counters."""
        self.reason_masks.clear()
        self.clocks_megahertz.clear()
        self.began = self._read_counters()

    def sample(self) -> None:
        """Append NVML's reasons why the GPU's clock rate is low, and the clock rate, each if NVML reports it."""
        reasons = query_first(CLOCK_REASON_CALLS, self.physical)
        megahertz = query(pynvml.nvmlDeviceGetClockInfo, self.physical, pynvml.NVML_CLOCK_SM)
        if reasons is not None:
            self.reason_masks.append(reasons)
        if megahertz is not None:
            self.clocks_megahertz.append(megahertz)

    def end(self, seconds: float) -> DeviceReport:
        """Return what NVML shows of the phase since `begin`, which took `seconds`.

        That is the lowest and the highest clock rate, for how long each cause held the clocks low, the number of other
        processes, and the energy; each as far as NVML reports it.
        """
        began, ended = self.began, self._read_counters()
        assert began is not None  # noqa: S101 - begin comes first
        self.sample()  # the last sample, after the last block
        held_back = self._held_back_seconds(began, ended, seconds)
        reading = DeviceReading(
            source="NVML",
            seconds=seconds,
            held_back_seconds=held_back or None,  # None if NVML reports neither counters nor reasons
            other_processes=count_others(self.earlier_pids, _compute_pids(self.handle), os.getpid()),
            clock_megahertz=[min(self.clocks_megahertz), max(self.clocks_megahertz)] if self.clocks_megahertz else None,
        )
        joules = None
        if ended.energy_millijoules is not None and began.energy_millijoules is not None:
            joules = (ended.energy_millijoules - began.energy_millijoules) / 1000
        return DeviceReport(reading, measured_energy(joules, seconds, "device"))

    def _held_back_seconds(self, began: Counters, ended: Counters, seconds: float) -> dict[str, float]:
        """Return for how many seconds of the phase each cause, such as `power cap`, held the GPU's clocks low.

        NVML counts some causes in nanoseconds and shows others only in samples. Where it does both, the longer time is
        returned.
        """
        held_back = {
            cause: (ended.held_back_nanoseconds[cause] - began.held_back_nanoseconds[cause]) / 1e9
            for cause in ended.held_back_nanoseconds.keys() & began.held_back_nanoseconds.keys()
        }
        if self.reason_masks:
            for cause, bit in REASONS.items():
                sampled_share = sum(bool(mask & bit) for mask in self.reason_masks) / len(self.reason_masks)
                held_back[cause] = max(held_back.get(cause, 0.0), sampled_share * seconds)
        return held_back

    def _read_counters(self) -> Counters:
        """Read NVML's cumulative counters: the time with low clocks by cause, and the energy, as far as supported."""
        held_back = {}
        for cause, policy in POLICIES.items():
            status = query(pynvml.nvmlDeviceGetViolationStatus, self.physical, policy)
            if status is not None and status.violationTime not in NO_VALUE:
                held_back[cause] = status.violationTime
        # The energy counter covers the whole GPU, so it says nothing about a MIG slice.
        is_whole_gpu = self.physical is self.handle
        energy = query(pynvml.nvmlDeviceGetTotalEnergyConsumption, self.physical) if is_whole_gpu else None
        return Counters(held_back_nanoseconds=held_back, energy_millijoules=energy)


class NvidiaMonitor(DeviceMonitor):
    """Monitor the GPU that a launch measures on; report nothing without NVML."""

    _pids_by_gpu: Mapping[str, frozenset[int]] | None = None
    _gpu: Gpu | None = None

    @property
    def watches_blocks(self) -> bool:
        """Return True if a GPU was found, whose clocks have to be sampled between timed blocks."""
        return self._gpu is not None

    def prepare(self) -> None:
        """Read which processes compute on each GPU, before this process does."""
        self._pids_by_gpu = find_compute_pids()

    def identify(self, name: str | None) -> Mapping[str, str]:
        """Find the GPU by index or UUID, and return its settings; none if NVML does not show it."""
        self._gpu = Gpu.open(name, self._pids_by_gpu)
        return self._gpu.settings() if self._gpu else {}

    def begin(self) -> None:
        """Begin a timed phase: drop earlier samples and read the GPU's counters, if a GPU was found."""
        if self._gpu:
            self._gpu.begin()

    def sample(self) -> None:
        """Sample the GPU's clock rate, and the reasons why it is low, if a GPU was found."""
        if self._gpu:
            self._gpu.sample()

    def end(self, seconds: float) -> DeviceReport:
        """End the timed phase, and return what NVML reports about the GPU; an empty report if no GPU was found."""
        return self._gpu.end(seconds) if self._gpu else DeviceReport()


def find_compute_pids() -> dict[str, frozenset[int]]:
    """Return the PIDs of the processes that compute on each GPU, by the GPU's UUID, as far as NVML lists them."""
    pids_by_gpu = {}
    for index in range(_count_gpus()):
        handle = query(pynvml.nvmlDeviceGetHandleByIndex, index)
        uuid = query(pynvml.nvmlDeviceGetUUID, handle)
        pids = _compute_pids(handle)
        if uuid is not None and pids is not None:
            pids_by_gpu[uuid] = pids
    return pids_by_gpu


def count_others(earlier_pids: frozenset[int] | None, current_pids: frozenset[int] | None, own_pid: int) -> int | None:
    """Return how many other processes compute on a GPU; None if unknown.

    `earlier_pids` are the processes that computed on the GPU before this process did.
    """
    if earlier_pids is None or current_pids is None:
        return None
    if own_pid in current_pids:
        return len(current_pids - {own_pid})
    # In a container NVML shows the host's PIDs, so this process is one of the new ones. If there is no new PID, NVML
    # does not show all processes.
    new_pids = current_pids - earlier_pids
    return len(current_pids) - 1 if new_pids else None


def _count_gpus() -> int:
    """Return the number of GPUs that NVML shows; 0 without NVML."""
    query(pynvml.nvmlInit)  # may be called more than once
    return query(pynvml.nvmlDeviceGetCount) or 0


def _find_handle(name: str) -> Any:
    """Return NVML's handle of a GPU by UUID or index; None if there is no such GPU.

    Any other name, such as an empty one, stands for the first GPU.
    """
    if name.startswith(("GPU-", "MIG-")):
        handle = query(pynvml.nvmlDeviceGetHandleByUUID, name)
        return handle if handle is not None else _find_by_prefix(name)
    # The index is CUDA's. It equals NVML's if all GPUs are of one model.
    index = int(name) if name.isdecimal() else 0
    return query(pynvml.nvmlDeviceGetHandleByIndex, index)


def _find_by_prefix(prefix: str) -> Any:
    """Return NVML's handle of the first GPU whose UUID begins with `prefix`; None if there is none.

    CUDA accepts such shortened UUIDs too.
    """
    for index in range(_count_gpus()):
        handle = query(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None and str(query(pynvml.nvmlDeviceGetUUID, handle)).startswith(prefix):
            return handle
    return None


def _compute_pids(handle: Any) -> frozenset[int] | None:
    """Return the PIDs of the processes that compute on a GPU; None if NVML does not list them."""
    processes: Sequence[Any] | None = query_first(PROCESS_CALLS, handle)
    return None if processes is None else frozenset(process.pid for process in processes)


def _count_nvlinks(device: Any) -> int:
    """Return the number of active NVLinks of a GPU; 0 if NVML shows none."""
    return sum(
        query(pynvml.nvmlDeviceGetNvLinkState, device, link) == pynvml.NVML_FEATURE_ENABLED
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
    )


def _on_or_off(state: int) -> str:
    return "on" if state else "off"
