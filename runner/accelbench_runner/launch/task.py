"""What a launch is asked to do, found out from its request, and what it does it with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from accelbench import catalogue, platforms
from accelbench.api.case import CaseVariant
from accelbench.platforms import Platform
from accelbench.workload import Measure, VariantKind, Workload
from accelbench_runner.clock import Clock
from accelbench_runner.devices.monitor import DeviceMonitor
from accelbench_runner.launch import dependence
from accelbench_runner.launch.machine import Machine
from accelbench_runner.launch.reporter import Reporter
from accelbench_runner.protocol import LaunchRequest


@dataclass(frozen=True)
class Task:
    """One variant of one case, once."""

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
    def of(cls, request: LaunchRequest, reporter: Reporter, machine: Machine) -> "Task":
        """Loads the workload; raises what is wrong with it, with its parameters or with the profile's platform."""
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
            measure=workload.measure(parameters),
            platform=platform,
            monitor=machine.monitor(platform, machine.clock, machine.processors),
        )

    @property
    def clock(self) -> Clock:
        """The machine's."""
        return self.machine.clock

    @property
    def directory(self) -> Path:
        """The launch's own."""
        return Path(self.request.directory)

    @property
    def libraries(self) -> Sequence[str]:
        """What the workload's program needs beside its framework."""
        return self.workload.libraries.get(self.kind.framework, ())

    @property
    def timed(self) -> bool:
        """Whether this launch's times count."""
        return self.request.purpose == "measure"

    @property
    def counts_calls(self) -> bool:
        """Whether it is one of the launches that count what a call does."""
        return self.request.round <= dependence.ROUNDS
