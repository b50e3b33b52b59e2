"""Judge outputs by accelbench's present rule of parity, called as the judge calls it."""

from dataclasses import dataclass
from functools import cached_property

import jax
import numpy as np

from accelbench.api.case import Case, CaseMeasurement, CaseOrigin, CaseVariant, Precision
from accelbench.api.result import CheckOutcome
from accelbench.launch.facts import Facts
from accelbench.launch.record import LaunchRecord, ParityReading
from accelbench.validity import formula, parity
from accelbench.workload import Array, Arrays, NamedArrays
from accelbench_runner.frameworks.jaxpr_arithmetic import accuracy_limit, numbers_by_type
from accelbench_runner.frameworks.torch_operations import DispatchCounter
from accelbench_runner.judge.arithmetic import round_arrays
from accelbench_runner.judge.decisions import reference_limit
from accelbench_runner.judge.parity import compare
from accelbench_runner.judge.reference import FORMULA_RUNS, Reference, compute
from accelbench_runner.judge.reference_program import NumpyProgram, ReferenceProgram
from benchmarks.parity.program import Function, Program, jax_inputs, run_jax, run_torch

NAME = "y"
BASELINE, VARIANT = "pytorch/eager", "jax/jit"


@dataclass(frozen=True)
class Judgement:
    """Hold the outcomes of the checks for one output.

    Attributes:
        parity: Outcome of the check `parity`; an output with an unexpected NaN or infinity has failed.
        formula: Outcome of the check `formula`.
        less_exact: True if the output passed as that of a less exact algorithm.
        ratio: Largest error over its tolerance.
        detail: What differs, where and by how much.
    """

    parity: CheckOutcome
    formula: CheckOutcome
    less_exact: bool
    ratio: float
    detail: str


@dataclass(frozen=True)
class BaselinesProgram:
    """Run a PyTorch program as the reference, as the judge's `OwnProgram` runs the baseline's program."""

    program: Program

    def exact(self, arrays: Arrays, units: int) -> NamedArrays:
        """Return the output in float64."""
        del units
        return {NAME: run_torch(self.program.torch, arrays.batches[0], "float64")}

    def rounded(self, arrays: Arrays, units: int, precision: Precision) -> NamedArrays:
        """Return the output in the policy's type; nothing for float64, which `exact` computes in."""
        del units
        return {} if precision == "float64" else {NAME: run_torch(self.program.torch, arrays.batches[0], precision)}

    def noisy(self, arrays: Arrays, units: int, precision: Precision, salt: int, ulps: float) -> NamedArrays:
        """Return nothing: operations of a framework cannot be given noise."""
        del arrays, units, precision, salt, ulps
        return {}


def numpy_program(program: Program) -> NumpyProgram:
    """Return the program's NumPy function in the form in which the judge runs a workload's `reference()`."""
    return NumpyProgram(lambda arrays, _units: {NAME: program.reference(*arrays.batches[0].values())})


@dataclass(frozen=True)
class Float64Run:
    """Hold a program's output in float64, and what a launch reports of that run.

    Attributes:
        output: The output.
        types: Floating-point types in the program.
        limit: Why the output may be less exact than float64; empty if it is not, None if unknown.
    """

    output: Array
    types: list[str]
    limit: str | None


class Judge:
    """Judge outputs of a program on the same inputs in one precision."""

    def __init__(
        self,
        program: ReferenceProgram,
        inputs: NamedArrays,
        precision: Precision,
        limit: str | None,
        own_program: str = "",
    ) -> None:
        """Keep the reference's program; it runs when the first output is judged.

        `limit` is why the reference may be less exact than float64, as in `Float64Run`.
        """
        self._program, self._precision, self._own_program = program, precision, own_program
        self._limit = limit
        self._inputs = Arrays(state={}, batches=(inputs,))
        self._case = Case(
            name="all",
            origin=CaseOrigin(run="parity", series="parity"),
            workload="matmul-chain",  # any: the checks read only the frameworks and the precision
            parameters={},
            variants=tuple(CaseVariant(name=use, use=use) for use in (BASELINE, VARIANT)),
            baseline=BASELINE,
            measurement=CaseMeasurement(precision=precision),
        )

    @cached_property
    def reference(self) -> Reference:
        """Return the reference in the policy's precision."""
        start = round_arrays(self._inputs, self._precision)
        expected = compute(self._program, start, 1, self._precision)
        return Reference(expected, self._precision, own_program=self._own_program)

    @property
    def runs(self) -> int:
        """Return how many runs of the reference the tolerance is computed from."""
        return self.reference.expected[NAME].choices.runs

    @cached_property
    def _reference_in_float64(self) -> Reference:
        """Return the reference in float64, with which the check `formula` compares."""
        expected = compute(self._program, self._inputs, 1, "float64", FORMULA_RUNS)
        return Reference(expected, "float64", own_program=self._own_program)

    def read_formula(self, output: Array) -> ParityReading:
        """Compare a program's output in float64 with the reference."""
        with np.errstate(all="ignore"):
            reading = compare({NAME: output}, self._reference_in_float64, 1)
        return reading.model_copy(update={"reference_limit": self._limit})

    def judge(self, output: Array, formula_reading: ParityReading, run: Float64Run) -> Judgement:
        """Judge an output by the checks `parity` and `formula`.

        Args:
            output: The output in the policy's precision.
            formula_reading: Comparison of the program's output in float64.
            run: The program's run in float64.
        """
        with np.errstate(all="ignore"):
            reading = compare({NAME: output}, self.reference, 1)
        launch = LaunchRecord(
            variant=VARIANT,
            round=1,
            position=0,
            wall_seconds=1.0,
            facts=Facts.parse({"formula": {"units": 1, "types": run.types, "accuracyLimit": run.limit}}),
            parity=reading.model_copy(update={"formula": formula_reading}),
        )
        finding = parity.CHECK.evaluate(self._case, launch)
        return Judgement(
            parity=finding.outcome if reading.finite else "failed",
            formula=formula.judge(launch).outcome,
            less_exact=finding.outcome == "passed" and reading.worst_ratio > 1,
            ratio=reading.worst_ratio,
            detail=finding.reading,
        )


def run_jax_in_float64(function: Function, inputs: NamedArrays) -> Float64Run:
    """Run a JAX program in float64, and describe it as a launch does."""
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(function)(*jax_inputs(inputs, "float64")).jaxpr
    output = run_jax(function, inputs, "float64")
    return Float64Run(output, sorted(numbers_by_type(jaxpr)), accuracy_limit(jaxpr))


def run_torch_in_float64(function: Function, inputs: NamedArrays) -> Float64Run:
    """Run a PyTorch program in float64, and describe it as a launch does."""
    with DispatchCounter() as counter:
        output = run_torch(function, inputs, "float64")
    total = counter.total()
    return Float64Run(output, sorted(total.types), total.accuracy_limit)


def limit_of_reference(program: Program, inputs: NamedArrays) -> str | None:
    """Return why the program's `reference()` may be less exact than float64; empty if it is not, None if unknown."""
    start = Arrays(state={}, batches=(inputs,))
    return reference_limit(lambda arrays: numpy_program(program).exact(arrays, 1), start)
