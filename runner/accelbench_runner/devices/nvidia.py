"""One NVIDIA GPU by NVML: what it is, and what happened to it while something was measured.

NVML is asked before and after a phase and between its blocks, never inside one. Where a reading is not to be had (an
older driver, a MIG slice, no rights) it is None, and nothing here fails for want of one.
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
"""Cumulative counters of time spent below the clocks asked for, by why."""
REASONS = {
    "power cap": pynvml.nvmlClocksEventReasonSwPowerCap,
    "hardware slowdown": pynvml.nvmlClocksEventReasonHwSlowdown,
    "thermal slowdown": pynvml.nvmlClocksEventReasonSwThermalSlowdown,
    "hardware thermal slowdown": pynvml.nvmlClocksEventReasonHwThermalSlowdown,
    "power brake": pynvml.nvmlClocksEventReasonHwPowerBrakeSlowdown,
}
"""The same as of one moment, finer; each look counts for its share of the phase."""

ASK_REASONS = (pynvml.nvmlDeviceGetCurrentClocksEventReasons, pynvml.nvmlDeviceGetCurrentClocksThrottleReasons)
"""The latter is what drivers before 535 call it."""
ASK_PROCESSES = (pynvml.nvmlDeviceGetComputeRunningProcesses_v3, pynvml.nvmlDeviceGetComputeRunningProcesses_v2)

T = TypeVar("T")


@dataclass(frozen=True)
class Counters:
    """What the device counts since some moment in the past."""

    held_back_nanoseconds: Mapping[str, int]
    energy_millijoules: int | None


def asked(question: Callable[..., T], *arguments: Any) -> T | None:
    """NVML's answer; None where it has none."""
    try:
        return question(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):
        return None


def first_answer(questions: Sequence[Callable[..., T]], *arguments: Any) -> T | None:
    """NVML's answer to the first question that it understands, newest first."""
    answers = (asked(question, *arguments) for question in questions)
    return next((answer for answer in answers if answer is not None), None)


def visible(environment: Mapping[str, str] = os.environ) -> str:
    """The first GPU that CUDA may use, as the environment names it: an index, a UUID or its beginning; or nothing."""
    for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"):
        first = environment.get(name, "").split(",")[0].strip()
        if first.startswith(("GPU-", "MIG-")) or (name.startswith("CUDA") and first.isdecimal()):
            return first
    return ""


@dataclass
class Gpu:
    """The GPU that a launch measures on."""

    handle: Any
    physical: Any
    """The whole device that a MIG slice is part of; else the device itself."""
    before: frozenset[int] | None
    """Processes that used it before this one did."""
    looks: list[int] = field(default_factory=list)
    """Reasons for the clocks, a bit mask a look."""
    clocks_megahertz: list[int] = field(default_factory=list)
    began: Counters | None = None

    @classmethod
    def open(cls, name: str | None = None, crowd: Mapping[str, frozenset[int]] | None = None) -> Self | None:
        """The GPU of that index or UUID, by default the first visible one; None where NVML does not know it.

        `crowd`: what `crowd()` found before the framework woke the device.
        """
        if not _count():
            return None
        handle = _find(visible() if name is None else name)
        if handle is None:
            return None
        is_slice = bool(asked(pynvml.nvmlDeviceIsMigDeviceHandle, handle))
        whole = asked(pynvml.nvmlDeviceGetDeviceHandleFromMigDeviceHandle, handle) if is_slice else None
        uuid = asked(pynvml.nvmlDeviceGetUUID, handle)
        return cls(handle, whole or handle, before=(crowd or {}).get(uuid or ""))

    def settings(self) -> dict[str, str]:
        """What stays as it is during a run, for the fingerprint: short strings, what is not told left out."""
        device = self.physical
        limit = asked(pynvml.nvmlDeviceGetEnforcedPowerLimit, device)
        ecc = asked(pynvml.nvmlDeviceGetCurrentEccMode, device)
        mig = asked(pynvml.nvmlDeviceGetMigMode, device)
        generation = asked(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, device)
        width = asked(pynvml.nvmlDeviceGetCurrPcieLinkWidth, device)
        clock = asked(pynvml.nvmlDeviceGetMaxClockInfo, device, pynvml.NVML_CLOCK_SM)
        found = {
            "name": asked(pynvml.nvmlDeviceGetName, device),
            "uuid": asked(pynvml.nvmlDeviceGetUUID, self.handle),
            "driver": asked(pynvml.nvmlSystemGetDriverVersion),
            "powerLimitWatts": None if limit is None else f"{limit / 1000:g}",
            "ecc": None if ecc is None else _on(ecc),
            "mig": None if mig is None else _on(mig[0]),
            "maxClockMegahertz": None if clock is None else str(clock),
            "link": f"PCIe {generation} x{width}" if generation and width else None,
            "nvlinks": str(_links(device) or "") or None,
        }
        return {name: value for name, value in found.items() if value}

    def begin(self) -> None:
        """The phase begins."""
        self.looks.clear()
        self.clocks_megahertz.clear()
        self.began = self._counters()

    def sample(self) -> None:
        """Between blocks: why the clocks are what they are."""
        reasons = first_answer(ASK_REASONS, self.physical)
        clock = asked(pynvml.nvmlDeviceGetClockInfo, self.physical, pynvml.NVML_CLOCK_SM)
        self.looks += [] if reasons is None else [reasons]
        self.clocks_megahertz += [] if clock is None else [clock]

    def end(self, seconds: float) -> DeviceReport:
        """What happened since `begin`, `seconds` ago."""
        began, ended = self.began, self._counters()
        assert began is not None  # noqa: S101 - begin comes first
        self.sample()
        held = {
            why: (ended.held_back_nanoseconds[why] - began.held_back_nanoseconds[why]) / 1e9
            for why in ended.held_back_nanoseconds.keys() & began.held_back_nanoseconds.keys()
        }
        for why, bit in REASONS.items():
            if self.looks:
                share = sum(bool(look & bit) for look in self.looks) / len(self.looks)
                held[why] = max(held.get(why, 0.0), share * seconds)
        spent = (ended.energy_millijoules, began.energy_millijoules)
        reading = DeviceReading(
            source="NVML",
            seconds=seconds,
            held_back_seconds=held if held or self.looks else None,
            other_processes=others(self.before, _processes(self.handle), os.getpid()),
            clock_megahertz=[min(self.clocks_megahertz), max(self.clocks_megahertz)] if self.clocks_megahertz else None,
        )
        joules = (spent[0] - spent[1]) / 1000 if spent[0] is not None and spent[1] is not None else None
        return DeviceReport(reading, Energy(joules=joules, seconds=seconds, scope="device") if joules else None)

    def _counters(self) -> Counters:
        held = {
            why: status.violationTime
            for why, policy in POLICIES.items()
            if (status := asked(pynvml.nvmlDeviceGetViolationStatus, self.physical, policy)) is not None
        }
        # The counter is the whole device's: what a slice of it spent, nobody tells.
        whole = self.physical is self.handle
        energy = asked(pynvml.nvmlDeviceGetTotalEnergyConsumption, self.physical) if whole else None
        return Counters(held_back_nanoseconds=held, energy_millijoules=energy)


class NvidiaMonitor(DeviceMonitor):
    """The GPU that a launch measures on, where NVML knows it."""

    _crowd: Mapping[str, frozenset[int]] | None = None
    _gpu: Gpu | None = None

    @property
    def watches_blocks(self) -> bool:
        """The reasons for the clocks are those of a moment."""
        return self._gpu is not None

    def arrive(self) -> None:
        """Who computes on which GPU."""
        self._crowd = crowd()

    def awake(self, name: str | None) -> Mapping[str, str]:
        """Its settings; empty where there is no NVML."""
        self._gpu = Gpu.open(name, self._crowd)
        return self._gpu.settings() if self._gpu else {}

    def begin(self) -> None:
        """Reads every counter."""
        if self._gpu:
            self._gpu.begin()

    def sample(self) -> None:
        """Why the clocks are what they are."""
        if self._gpu:
            self._gpu.sample()

    def end(self, seconds: float) -> DeviceReport:
        """Clocks, energy, and who else was there."""
        return self._gpu.end(seconds) if self._gpu else DeviceReport()


def crowd() -> dict[str, frozenset[int]]:
    """Which processes compute on which GPU, by UUID; to be asked before our own does."""
    found = {}
    for index in range(_count()):
        handle = asked(pynvml.nvmlDeviceGetHandleByIndex, index)
        uuid = asked(pynvml.nvmlDeviceGetUUID, handle)
        processes = _processes(handle)
        if uuid is not None and processes is not None:
            found[uuid] = processes
    return found


def others(before: frozenset[int] | None, now: frozenset[int] | None, own: int) -> int | None:
    """How many processes but this one use the device; None where that cannot be told.

    In a container NVML speaks of processes by the host's numbers, so that we cannot know our own: of those that came
    after us one is ours. Where not even one came, NVML hides them.
    """
    if before is None or now is None:
        return None
    if own in now:
        return len(now - {own})
    came = now - before
    return len(now) - 1 if came else None


def _count() -> int:
    """GPUs that NVML shows; 0 where there is no NVML. Initialising it again is allowed and counted."""
    asked(pynvml.nvmlInit)
    return asked(pynvml.nvmlDeviceGetCount) or 0


def _find(name: str) -> Any:
    """The handle; an index counts CUDA's devices, which NVML orders alike where all of them are of one model."""
    if name.startswith(("GPU-", "MIG-")):
        exact = asked(pynvml.nvmlDeviceGetHandleByUUID, name)
        return exact if exact is not None else _find_beginning(name)
    return asked(pynvml.nvmlDeviceGetHandleByIndex, int(name) if name.isdecimal() else 0)


def _find_beginning(name: str) -> Any:
    """CUDA takes the beginning of a UUID for the whole."""
    for index in range(_count()):
        handle = asked(pynvml.nvmlDeviceGetHandleByIndex, index)
        if handle is not None and str(asked(pynvml.nvmlDeviceGetUUID, handle)).startswith(name):
            return handle
    return None


def _processes(handle: Any) -> frozenset[int] | None:
    running: Sequence[Any] | None = first_answer(ASK_PROCESSES, handle)
    return None if running is None else frozenset(process.pid for process in running)


def _links(device: Any) -> int:
    """NVLinks that are up."""
    return sum(
        asked(pynvml.nvmlDeviceGetNvLinkState, device, link) == pynvml.NVML_FEATURE_ENABLED
        for link in range(pynvml.NVML_NVLINK_MAX_LINKS)
    )


def _on(state: int) -> str:
    return "on" if state else "off"
