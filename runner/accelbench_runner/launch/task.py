"""Resolve a launch request into the task to measure and the machine to measure it on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from accelbench import catalogue, frameworks, platforms
from accelbench.api.case import CaseVariant
from accelbench.platforms import Platform
from accelbench.stats import arrivals as arrivals_schedule
from accelbench.workload import Measure, VariantKind, Workload
from accelbench_runner.clock import Clock, MonotonicClock
from accelbench_runner.devices import cpu
from accelbench_runner.devices.monitor import DeviceMonitor
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings
from accelbench_runner.launch import dependence
from accelbench_runner.launch.reporter import Reporter
from accelbench_runner.protocol import LaunchRequest


def import_adapter(framework: str) -> Callable[[AdapterSettings], Adapter]:
    """Import a framework, and return the class that adapts the framework to accelbench."""
    adapter: Callable[[AdapterSettings], Adapter] = frameworks.find(framework).load_adapter()
    return adapter


def create_monitor(platform: Platform, clock: Clock, processors: cpu.Processors) -> DeviceMonitor:
    """Create the object that measures the platform's device (energy, clocks, throttling) during a launch."""
    monitor: DeviceMonitor = platform.load_monitor()(clock, processors)
    return monitor


@dataclass(frozen=True)
class Machine:
    """Hold the clock, processors, adapter and monitor that a launch uses; a simulation can replace each of them."""

    clock: Clock = field(default_factory=MonotonicClock)
    processors: cpu.Processors = cpu
    adapter: Callable[[str], Callable[[AdapterSettings], Adapter]] = import_adapter
    """Returns the adapter class for a framework's name."""
    monitor: Callable[[Platform, Clock, cpu.Processors], DeviceMonitor] = create_monitor


@dataclass(frozen=True)
class Task:
    """Describe one launch: one variant of one case."""

    request: LaunchRequest
    reporter: Reporter
    machine: Machine
    variant: CaseVariant
    workload: Workload
    parameters: Any
    kind: VariantKind
    measure: Measure
    platform: Platform
    monitor: DeviceMonitor

    @classmethod
    def load(cls, request: LaunchRequest, reporter: Reporter, machine: Machine) -> "Task":
        """Find the workload, parameters and platform that the request names, and create the device's monitor."""
        case = request.case
        variant = next(variant for variant in case.variants if variant.name == request.variant)
        workload = catalogue.find(case.workload)
        parameters = catalogue.parse_parameters(workload, case.parameters)
        platform = platforms.find(case.accelerator.platform)
        return cls(
            request=request,
            reporter=reporter,
            machine=machine,
            variant=variant,
            workload=workload,
            parameters=parameters,
            kind=workload.variants()[variant.use],
            measure=catalogue.measure_of(workload, parameters, case.measurement.protocol),
            platform=platform,
            monitor=machine.monitor(platform, machine.clock, machine.processors),
        )

    @property
    def clock(self) -> Clock:
        """Return the clock by which the launch is timed; a simulation has its own."""
        return self.machine.clock

    @property
    def directory(self) -> Path:
        """Return the directory in which the launch writes its files."""
        return Path(self.request.directory)

    @property
    def libraries(self) -> Sequence[str]:
        """Return the modules that the program imports in addition to its framework."""
        return self.workload.libraries_of(self.kind)

    @property
    def timed(self) -> bool:
        """Return True if this launch measures times, unlike a check, a compilation, a warm start or an explanation."""
        return self.request.purpose == "measure"

    @property
    def differentiates(self) -> bool:
        """Return True if autograd has to be on for the step, by declaration or because an earlier launch needed it."""
        return self.measure.differentiates or self.request.needs_gradients

    def arrival_times(self) -> tuple[float, ...]:
        """Return when requests arrive, in seconds after the start; empty unless the protocol is `arrivals`."""
        case = self.request.case
        arrivals = case.measurement.arrivals
        if arrivals is None:
            return ()
        return arrivals_schedule.arrival_times(
            rate_per_second=arrivals.rate_per_second,
            process=arrivals.process,
            requests=arrivals.requests,
            seed=case.measurement.seed,
            case=case.name,
            round_number=self.request.round,
        )

    @property
    def counts_calls(self) -> bool:
        """Return True if this launch counts the operations of calls, as launches of the first rounds do."""
        return self.request.round <= dependence.ROUNDS
