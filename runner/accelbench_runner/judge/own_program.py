"""The baseline's own program in float64 on the CPU: what is right, where a workload does not say."""

import os
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.api.case import Case
from accelbench.catalogue import workload_checks
from accelbench.workload import Arrays, NamedArrays, Program, Workload
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings

PLATFORM = "cpu"
REMEDY = "write a reference() in NumPy, or make arrays with dtype=x.dtype"
"""Where a baseline computes something else in float64 than it does in the precision asked for, or nothing."""


class OwnProgram:
    """A baseline, step after step as it was written: neither jit nor compile is placed around it."""

    def __init__(self, case: Case, workload: Workload, parameters: Any) -> None:
        """Imports the baseline's framework; raises what that raises."""
        variant = next(each for each in case.variants if each.name == case.baseline)
        self._kind = workload.variants()[variant.use]
        framework = frameworks.find(self._kind.framework)
        self._workload, self._parameters = workload, parameters
        self._adapter: Adapter = framework.load_adapter()(
            AdapterSettings(
                mode=self._kind.mode,
                options=catalogue.parse_options(self._kind, variant.options),
                platform=PLATFORM,
                precision="float64",
                threads=len(os.sched_getaffinity(0)),
                differentiates=workload.measure(parameters).differentiates,
                backend=framework.backend(PLATFORM, {}),
            )
        )
        self._adapter.initialise()

    def run(self, arrays: Arrays, units: int) -> NamedArrays:
        """What it exports after `units` units."""
        build = getattr(self._workload, self._kind.method)
        program = workload_checks.returned(build, Program, self._parameters, arrays, self._adapter)
        state, out = program.state, None
        for index in range(units // program.units):
            state, out = program.step(state, program.batches[index % program.inner % len(program.batches)])
        return self._adapter.to_numpy(workload_checks.exported(program, state, out))
