"""Run a baseline's own program in float64 as the reference, for workloads that have none."""

import os
from dataclasses import replace
from typing import Any

from accelbench import catalogue, frameworks
from accelbench.api.case import Case, Precision
from accelbench.catalogue import workload_checks
from accelbench.workload import Arrays, NamedArrays, Workload
from accelbench_runner.frameworks.adapter import Adapter, AdapterSettings, export_numbers
from accelbench_runner.frameworks.build import rebuild_program

PLATFORM = "cpu"
REMEDY = "write a reference() in NumPy, or make arrays with dtype=x.dtype, and modules with .to(x.dtype)"
"""Advice if a baseline's own program fails in float64, or differs there from its outputs in the requested precision."""


class OwnProgram:
    """Run a baseline's own program on the CPU, step by step, without jit or compile."""

    def __init__(self, case: Case, workload: Workload, parameters: Any) -> None:
        """Import the baseline's framework, and initialise it on the CPU in float64."""
        variant = next(variant for variant in case.variants if variant.name == case.baseline)
        self._variant_kind = workload.variants()[variant.use]
        self._workload, self._parameters = workload, parameters
        self._settings = AdapterSettings(
            mode=self._variant_kind.adapter_mode,
            options=catalogue.parse_options(self._variant_kind, variant.options),
            platform=PLATFORM,
            precision="float64",
            rounded=case.arithmetic,  # so that captured floats and random numbers are those of launches
            threads=len(os.sched_getaffinity(0)),
            differentiates=workload.measure(parameters).differentiates,
            backend=frameworks.find(self._variant_kind.framework).backend(PLATFORM, backends={}),
        )
        self._adapter = self._load_adapter()

    def _load_adapter(self) -> Adapter:
        """Return an adapter of the baseline's framework that is initialised with the current settings."""
        adapter: Adapter = frameworks.find(self._variant_kind.framework).load_adapter()(self._settings)
        adapter.initialise()
        return adapter

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the program's outputs in float64 after `units` units of work."""
        return self._run(arrays, units, "float64")

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the program's outputs in the type of `precision`; empty for float64, which `exact` computes."""
        return {} if precision == "float64" else self._run(arrays, units, precision)

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return no outputs: noise cannot be added to the operations of a framework."""
        del arrays, units, precision, salt, ulps
        return {}

    def _run(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the program's outputs in `precision`; run it again with autograd if it needs gradients.

        Settings stay as the last run needed them, so autograd stays on for later runs.
        """
        if precision != self._settings.precision:  # a framework has one precision at a time
            self._settings = replace(self._settings, precision=precision)
            self._adapter = self._load_adapter()
        try:
            with self._adapter.autograd_required():  # raises an error if the program differentiates without autograd
                return self._run_steps(arrays, units)
        except workload_checks.ERRORS as error:
            if not self._adapter.needs_gradients(error):
                raise
        self._settings = replace(self._settings, differentiates=True)
        self._adapter = self._load_adapter()
        return self._run_steps(arrays, units)

    def _run_steps(self, arrays: Arrays, units: int) -> NamedArrays:
        """Build the program again from `arrays`, run `units` units of work step by step, and return the outputs."""
        program = rebuild_program(self._workload, self._variant_kind, self._parameters, arrays, self._adapter)
        try:
            state, out = program.state, None
            steps = max(1, units // program.units)  # a step may do several units, also more than the judge asks for
            for step in range(steps):
                step_in_call = step % program.inner  # every call starts again with the first batch
                state, out = program.step(state, program.batches[step_in_call % len(program.batches)])
            return export_numbers(self._adapter, program.export, workload_checks.call_export(program, state, out))
        finally:
            self._adapter.restore_captured()
