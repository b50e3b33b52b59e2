"""Judge the outputs of each program, right and wrong, by the rule of parity before and now."""

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import numpy as np

from accelbench.api.case import Precision
from accelbench.workload import Array, NamedArrays
from accelbench_runner.judge.arithmetic import round_array
from benchmarks.parity import before
from benchmarks.parity.after import (
    BASELINE,
    BaselinesProgram,
    Float64Run,
    Judge,
    Judgement,
    limit_of_reference,
    numpy_program,
    run_jax_in_float64,
    run_torch_in_float64,
)
from benchmarks.parity.errors import inject
from benchmarks.parity.program import FORMS, Program, run_form, run_jax

Returned = TypeVar("Returned")
TIMED_RUNS = 3
"""Calls of a function, of which the fastest counts."""


@dataclass(frozen=True)
class Output:
    """Describe an output that was judged.

    Attributes:
        program: Name of the program.
        less_exact: True if its algorithm is known to round more than the reference's.
        precision: The policy.
        seed: Seed of the inputs.
        kind: `right`, or how it is wrong: by an error `injected` into the output, or `written` into the program.
        name: The right program's framework, or what is written into the wrong one.
        reach: How many elements are wrong.
        size: Relative size of an injected error.
        unchanged: True if it equals the right program's output.
    """

    program: str
    less_exact: bool
    precision: Precision
    seed: int
    kind: Literal["right", "injected", "written"]
    name: str
    reach: str = ""
    size: float = 0.0
    unchanged: bool = False


@dataclass(frozen=True)
class Row:
    """Hold an output's judgements.

    Attributes:
        output: The output.
        before: True if the rule of commit 1e6de44 refuses it.
        now: What the checks say now.
        own: What the checks say if the workload has no reference, so that the baseline's own program replaces it.
    """

    output: Output
    before: bool
    now: Judgement
    own: Judgement


@dataclass(frozen=True)
class Cost:
    """Hold the processor seconds of a reference: of one run, and of all runs by each rule.

    Attributes:
        program: Name of the program.
        precision: The policy.
        seed: Seed of the inputs.
        run: One run of the reference.
        before: All runs by the rule of commit 1e6de44.
        now: All runs now.
        runs: Number of runs from which the tolerance is computed; fewer if one takes longer than a second.
        own_run: One run of a baseline's own program, which replaces a missing reference.
        own: All its runs now.
        own_runs: Like `runs`, for the baseline's own program.
    """

    program: str
    precision: Precision
    seed: int
    run: float
    before: float
    now: float
    runs: int
    own_run: float
    own: float
    own_runs: int


class Judges:
    """Judge the outputs of a program on the same inputs in one precision, by each rule."""

    def __init__(self, program: Program, inputs: NamedArrays, precision: Precision, seed: int) -> None:
        """Run the references on these inputs, and measure what they cost."""
        rounded = {name: round_array(array, precision) for name, array in inputs.items()}
        own_limit = run_torch_in_float64(program.torch, inputs).limit
        self._now = Judge(numpy_program(program), inputs, precision, limit_of_reference(program, inputs))
        self._own = Judge(BaselinesProgram(program), inputs, precision, own_limit, own_program=BASELINE)
        self._before, before_seconds = _timed(
            lambda: before.compute(lambda arrays: program.reference(*arrays.values()), rounded, precision)
        )
        self.cost = Cost(
            program=program.name,
            precision=precision,
            seed=seed,
            run=_shortest(partial(program.reference, *rounded.values())),
            before=before_seconds,
            now=_timed(lambda: self._now.reference)[1],
            runs=self._now.runs,
            own_run=_shortest(partial(run_form, program, "torch", rounded, "float64")),
            own=_timed(lambda: self._own.reference)[1],
            own_runs=self._own.runs,
        )

    def judge_all(self, outputs: Sequence[tuple[Output, Array]], in_float64: Float64Run) -> list[Row]:
        """Judge outputs of one program by each rule.

        Args:
            outputs: Description and value of each output.
            in_float64: The program's run in float64.
        """
        formula, own_formula = self._now.read_formula(in_float64.output), self._own.read_formula(in_float64.output)
        return [
            Row(
                output=output,
                before=self._before.refuses(value),
                now=self._now.judge(value, formula, in_float64),
                own=self._own.judge(value, own_formula, in_float64),
            )
            for output, value in outputs
        ]


def measure(program: Program, precision: Precision, seed: int) -> tuple[list[Row], Cost]:
    """Judge the right and the wrong outputs of a program in one precision."""
    inputs = program.draw(seed)
    rounded = {name: round_array(array, precision) for name, array in inputs.items()}
    rng = np.random.default_rng([seed, zlib.crc32(program.name.encode())])
    judges = Judges(program, inputs, precision, seed)
    describe = partial(Output, program.name, program.less_exact, precision, seed)
    rows, right_outputs = [], {}
    for form in FORMS:
        right_outputs[form] = run_form(program, form, rounded, precision)
        outputs = [(describe("right", form), right_outputs[form])]
        outputs += [
            (describe("injected", form, wrong.reach, wrong.size), wrong.output)
            for wrong in inject(right_outputs[form], precision, rng)
        ]
        run = run_jax_in_float64(program.jax, inputs) if form == "jax" else run_torch_in_float64(program.torch, inputs)
        rows += judges.judge_all(outputs, run)
    for fault in program.faults:
        value = run_jax(fault.run, rounded, precision)
        unchanged = bool(np.array_equal(value, right_outputs["jax"]))
        output = describe("written", fault.name, fault.reach, unchanged=unchanged)
        rows += judges.judge_all([(output, value)], run_jax_in_float64(fault.run, inputs))
    return rows, judges.cost


def to_record(rows: Sequence[Row], cost: Cost) -> dict[str, Any]:
    """Return what was measured as JSON."""
    return {"rows": [asdict(row) for row in rows], "cost": asdict(cost)}


def from_record(record: dict[str, Any]) -> tuple[list[Row], Cost]:
    """Return what was measured from its JSON."""
    rows = [
        Row(
            output=Output(**row["output"]),
            before=row["before"],
            now=Judgement(**row["now"]),
            own=Judgement(**row["own"]),
        )
        for row in record["rows"]
    ]
    return rows, Cost(**record["cost"])


def _timed(function: Callable[[], Returned]) -> tuple[Returned, float]:
    """Call the function, and return its result and the processor seconds that it took."""
    began = time.process_time()
    result = function()
    return result, time.process_time() - began


def _shortest(function: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few calls."""
    with np.errstate(all="ignore"):
        return min(_timed(function)[1] for _ in range(TIMED_RUNS))
