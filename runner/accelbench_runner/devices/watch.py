"""What the machine and the device did while something was measured: facts that validity checks and numbers read."""

import os

from accelbench.launch.fact import NOT_REPORTED
from accelbench.launch.facts import Facts, Neighbours, Process, Throttling
from accelbench_runner.clock import Clock
from accelbench_runner.devices import cpu, processes
from accelbench_runner.devices.cpu import Processors
from accelbench_runner.devices.monitor import DeviceMonitor


class Watch:
    """`begin` and `end` stand around what is measured."""

    def __init__(self, monitor: DeviceMonitor, clock: Clock, processors: Processors = cpu) -> None:
        self._monitor = monitor
        self._clock = clock
        self._processors = processors

    def begin(self) -> None:
        """Reads every counter; cheap readings last, so that they cover the least that is not measured."""
        self._others = self._processors.others()
        self._monitor.begin()
        self._taken, self._used = self._processors.taken(), self._processors.usage()
        self._began = self._clock.seconds()

    def end(self) -> Facts:
        """What happened since `begin`, as far as known."""
        seconds = self._clock.seconds() - self._began
        used, taken = self._processors.usage(), self._processors.taken()
        device = self._monitor.end(seconds)
        most = processes.most(self._others, self._processors.others())
        return Facts(
            idle=device.idle or NOT_REPORTED,
            throttling=Throttling(**taken.since(self._taken)._asdict()),
            neighbours=Neighbours(
                busy_seconds=used.by_others_since(self._used),
                offered_seconds=seconds * len(os.sched_getaffinity(0)),
                processes=[Process(**each._asdict()) for each in most],
            ),
            device_reading=device.reading or NOT_REPORTED,
            energy=device.energy or NOT_REPORTED,
        )
