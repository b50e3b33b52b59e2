"""What the machine and the device did while something was measured: facts that validity checks and costs read."""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from accelbench.api.case import Platform
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

    def end(self) -> dict[str, Any]:
        """The facts `idle`, `throttling`, `neighbours`, `gpu` and `energy`; None where there is nothing to say."""
        seconds = self._clock.seconds() - self._began
        used, taken = self._processors.usage(), self._processors.taken()
        joules, source = rapl.joules(self._packages, rapl.read()), "rapl"
        most = processes.most(self._others, self._processors.others())
        gpu = self.gpu.end(seconds) if self.gpu else None
        if gpu:
            joules, source = gpu["joules"], "nvml"
        return {
            "idle": self._idle(seconds, used),
            "throttling": taken.since(self._taken)._asdict(),
            "neighbours": {
                "busy_seconds": used.by_others_since(self._used),
                "offered_seconds": seconds * len(os.sched_getaffinity(0)),
                "processes": [each._asdict() for each in most],
            },
            "gpu": gpu,
            "energy": None if joules is None else {"joules": joules, "seconds": seconds, "source": source},
        }

    def _idle(self, seconds: float, used: Usage) -> dict[str, float] | None:
        """Of a processor alone: while a GPU computes, whoever waits for it is idle."""
        if self._platform != "cpu" or used.waited_seconds is None or self._used.waited_seconds is None:
            return None
        waited = max(0.0, used.waited_seconds - self._used.waited_seconds)  # of threads that ended nothing is told
        return {"seconds": seconds, "busy_seconds": used.own_seconds - self._used.own_seconds + waited}
