"""What the machine and the device did while something was measured: facts that validity checks and costs read."""

import os
from importlib import import_module
from typing import TYPE_CHECKING

from accelbench.api.case import Platform
from accelbench.launch.fact import UNTOLD
from accelbench.launch.facts import Energy, EnergySource, Facts, Idle, Neighbours, Process, Throttling
from accelbench_runner.clock import Clock
from accelbench_runner.devices import cpu, processes, rapl
from accelbench_runner.devices.cpu import Processors, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from accelbench_runner.devices.nvidia import Gpu


class Watch:
    """`arrive` before the framework wakes the device; `begin` and `end` stand around what is measured."""

    def __init__(self, platform: Platform, clock: Clock, processors: Processors = cpu) -> None:
        self._platform = platform
        self._clock = clock
        self._processors = processors
        self._crowd: Mapping[str, frozenset[int]] | None = None
        self.gpu: Gpu | None = None

    def arrive(self) -> None:
        """Who is on the device before us."""
        if self._platform == "cuda":
            self._crowd = import_module("accelbench_runner.devices.nvidia").crowd()

    def awake(self, name: str | None) -> dict[str, str] | None:
        """The device is awake, and is `name` to the framework; returns its settings, where it is a GPU with NVML."""
        if self._platform == "cuda":
            self.gpu = import_module("accelbench_runner.devices.nvidia").Gpu.open(name, self._crowd)
        return self.gpu.settings() if self.gpu else None

    def begin(self) -> None:
        """Reads every counter; cheap readings last, so that they cover the least that is not measured."""
        self._others = self._processors.others()
        if self.gpu:
            self.gpu.begin()
        self._packages = rapl.read()
        self._taken, self._used = self._processors.taken(), self._processors.usage()
        self._began = self._clock.seconds()

    def look(self) -> None:
        """Between blocks."""
        if self.gpu:
            self.gpu.look()

    def end(self) -> Facts:
        """What happened since `begin`: `idle`, `throttling`, `neighbours`, `gpu` and `energy`, as far as known."""
        seconds = self._clock.seconds() - self._began
        used, taken = self._processors.usage(), self._processors.taken()
        joules = rapl.joules(self._packages, rapl.read())
        most = processes.most(self._others, self._processors.others())
        gpu = None
        source: EnergySource = "rapl"
        if self.gpu:
            (gpu, joules), source = self.gpu.end(seconds), "nvml"
        return Facts(
            idle=self._idle(seconds, used) or UNTOLD,
            throttling=Throttling(**taken.since(self._taken)._asdict()),
            neighbours=Neighbours(
                busy_seconds=used.by_others_since(self._used),
                offered_seconds=seconds * len(os.sched_getaffinity(0)),
                processes=[Process(**each._asdict()) for each in most],
            ),
            gpu=gpu or UNTOLD,
            energy=Energy(joules=joules, seconds=seconds, source=source) if joules else UNTOLD,
        )

    def _idle(self, seconds: float, used: Usage) -> Idle | None:
        """Of a processor alone: while a GPU computes, whoever waits for it is idle."""
        if self._platform != "cpu" or used.waited_seconds is None or self._used.waited_seconds is None:
            return None
        waited = max(0.0, used.waited_seconds - self._used.waited_seconds)  # of threads that ended nothing is told
        return Idle(seconds=seconds, busy_seconds=used.own_seconds - self._used.own_seconds + waited)
