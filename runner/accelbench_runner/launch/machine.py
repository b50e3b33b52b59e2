"""What a launch runs on: this machine with its frameworks, or a simulation whose truth is known."""

from collections.abc import Callable
from dataclasses import dataclass, field

from accelbench import frameworks
from accelbench.platforms import Platform
from accelbench_runner.clock import Clock, MonotonicClock
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import DeviceMonitor
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings


def imported(framework: str) -> Callable[[AdapterSettings], Adapter]:
    """The framework's adapter, and with it the framework."""
    adapter: Callable[[AdapterSettings], Adapter] = frameworks.find(framework).load_adapter()
    return adapter


def monitored(platform: Platform, clock: Clock, processors: cpu.Processors) -> DeviceMonitor:
    """The platform's monitor."""
    monitor: DeviceMonitor = platform.load_monitor()(clock, processors)
    return monitor


@dataclass(frozen=True)
class Machine:
    """What is not the workload's, and decides what a launch finds."""

    clock: Clock = field(default_factory=MonotonicClock)
    processors: cpu.Processors = cpu
    adapter: Callable[[str], Callable[[AdapterSettings], Adapter]] = imported
    """By the framework's name."""
    monitor: Callable[[Platform, Clock, cpu.Processors], DeviceMonitor] = monitored
