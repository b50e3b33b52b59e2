"""Check that a step depends on its inputs and does its work in every call, after its blocks have been timed.

A program that ignores its inputs, and computes with captured arrays or returns stored results, is right on the inputs
that it was built from. So the launch gives it other inputs of the same shapes, and the judge compares the results. The
launch also counts the operations that the framework runs: repeated calls on the same inputs must run as many as the
first call.

A program may inspect the call stack to detect timing. So the functions that make timed blocks make one more block: its
results must equal those of untimed calls, and its operations are counted too. Operations of the export, which is not
timed, are counted as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.catalogue import inputs, workload_checks
from accelbench.launch.fact import value_or_none
from accelbench.launch.facts import Dependence, Replay
from accelbench.workload import NamedArrays, Program, VariantKind, Workload
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Adapter, export_numbers
from accelbench_runner.frameworks.build import build_program
from accelbench_runner.frameworks.captured import captured_arrays
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks
from accelbench_runner.launch.reporter import read_fact
from accelbench_runner.outputs import UNSEEN, as_real, save

ROUNDS = 2
"""Number of rounds, from the first on, that check this: a program treats its inputs in the same way in every launch."""
RUNS = (1, 2, 3, 4)
"""Number of calls in each repeated run on the other inputs."""
MINIMUM_CALLS, MAXIMUM_CALLS = 16, 64
"""Range of the number of calls in the run of many calls, if a block has fewer. The number is random, so that no program
can expect it."""
QUICK_SECONDS = 0.25
"""Maximum seconds of a call that is repeated often and replayed; a longer call is repeated twice."""
MANY_SECONDS = 0.02
"""Maximum seconds of a call for which the run of many calls is made."""
MAXIMUM_REPLAYED_CALLS = 4096
"""Maximum calls of a block that are replayed, twice and untimed: a program may be fast only while it is timed."""

Export = Callable[[Any, Any], Mapping[str, Any]]
"""Takes a state and the last `out`, which steps return besides the state; returns the arrays to compare by name."""


@dataclass(frozen=True)
class Subject:
    """Hold what is needed to run a variant's timed program on other inputs."""

    workload: Workload
    parameters: Any
    kind: VariantKind
    seed: int
    """Seed of the inputs that the program was built from."""
    step: Callable[..., Any]
    export: Export
    work: Work
    """Work with the compiled call."""


def without_inputs(work: Work) -> Work:
    """Return the work without its state and batches, so that their memory can be freed."""
    return replace(work, fresh=lambda: None, batches=None)


def examine(adapter: Adapter, subject: Subject, unseen_seed: int, directory: Path, clock: Clock) -> Dependence:
    """Run the timed program on inputs that it does not know, count its operations, and write its outputs for the judge.

    The result's `unable` is the reason why the program could not run on other inputs; `raised` is an exception that the
    program raised on them.
    """
    # The arrays that the step captures can belong to any library, so describing them may raise anything.
    described = read_fact(lambda: captured_arrays(subject.step) or adapter.accounting.constants())
    captured = value_or_none(described) or []
    try:
        work = _work_on_other_inputs(adapter, subject, unseen_seed)
    except workload_checks.ERRORS as error:
        unable = f"no other inputs can be made: {workload_checks.describe(error)}"
        return Dependence(captured=captured, unable=unable)
    if work is None:
        unable = "no other inputs can be made: no array of floats is other than zero"
        return Dependence(captured=captured, unable=unable)
    # Export with the timed program: a program built from these inputs could export their right result without a step.
    trial = _Trial(adapter, subject.export, work, clock)
    fields: dict[str, Any] = {"captured": captured}
    try:
        _run_trial(trial, fields, directory)  # adds to `fields`
    except workload_checks.ERRORS as error:
        # Lack of memory is no fault of the program: the other inputs need memory in addition to the original ones.
        if isinstance(error, MemoryError) or adapter.out_of_memory(error):
            fields["unable"] = workload_checks.describe(error)
        else:
            fields["raised"] = workload_checks.describe(error)
    return Dependence(**fields)


def _work_on_other_inputs(adapter: Adapter, subject: Subject, unseen_seed: int) -> Work | None:
    """Return the subject's compiled call with other inputs of the same shapes; None if no input can be changed."""
    original_arrays = inputs.generate(subject.workload, subject.parameters, subject.seed)
    arrays = inputs.generate_unseen(subject.workload, subject.parameters, original_arrays, unseen_seed)
    if inputs.digest(arrays) == inputs.digest(original_arrays):
        return None
    # Use a new instance of the workload, so that the timed program's instance does not change.
    program = build_program(type(subject.workload)(), subject.kind, subject.parameters, arrays, adapter)
    del original_arrays, arrays  # frees their memory
    other_work = adapter.prepare(program)
    return replace(subject.work, fresh=other_work.fresh, batches=other_work.batches)


@dataclass(frozen=True)
class _Trial:
    """Run the timed program on other inputs."""

    adapter: Adapter
    export: Export
    work: Work
    clock: Clock

    def run(self, calls: int) -> tuple[dict[str, int], Any]:
        """Make a block of calls; return how often it ran each operation, by name, and the last call's result."""
        results: list[Any] = []

        def block() -> None:
            """Make the block, and store the last call's result."""
            blocks.time_calls(self.work, calls, self.clock, results.append)

        return count_operations(self.adapter, self.work, block), results[-1]

    def export_result(self, result: Any) -> NamedArrays:
        """Return the arrays that the judge compares for a call's result."""
        return _export_arrays(self.adapter, self.export, self.work, result)

    def count_export(self, result: Any) -> dict[str, int]:
        """Count the operations that the framework runs to export `result`, by name."""
        self.export_result(result)  # compiles the export, so that compiling is not counted below
        return self.adapter.accounting.count_dispatched(lambda: self.export_result(result))


def _run_trial(trial: _Trial, fields: dict[str, Any], directory: Path) -> None:
    """Call the program on other inputs, save the first call's outputs, and count operations.

    The counts are added to `fields`, the fields of a `Dependence`, one by one, so that they are kept if a later call
    raises.
    """
    began = trial.clock.seconds()
    fields["dispatched"], first_result = trial.run(1)
    seconds = trial.clock.seconds() - began
    save(directory / UNSEEN, trial.export_result(first_result))
    fields["units"] = trial.work.units
    if seconds > QUICK_SECONDS:
        # With fewer than two calls, a program that keeps its result in the state would not be noticed.
        two_calls_counts, _ = trial.run(2)
        fields["again"] = [fields["dispatched"], two_calls_counts]
        return
    first_export_counts = trial.count_export(first_result)
    del first_result  # frees its memory
    repetitions = [trial.run(calls) for calls in RUNS]
    fields["again"] = [counts for counts, _ in repetitions]
    _, last_result = repetitions[-1]
    fields["exported"] = [first_export_counts, trial.count_export(last_result)]


Block = Callable[[int, Callable[[Any], None]], object]
"""Makes a block of that many calls with the functions that make timed blocks, and passes on the last call's result."""


@dataclass(frozen=True)
class ExtraBlock:
    """Hold the operations and the outputs of one more block, made by the functions that make timed blocks."""

    counts: Mapping[str, Any]
    """Operations, as fields of `Dependence`."""
    calls: int = 0
    """Calls of the block whose outputs are kept; 0 without outputs."""
    outputs: NamedArrays | None = None
    """None if a call takes too long to be repeated."""


def make_extra_block(
    adapter: Adapter, program: Program, work: Work, block: Block, calls: int, seconds_per_call: float, unseen_seed: int
) -> ExtraBlock:
    """Count the operations of one call and of many calls, and export the outputs of a block of calls.

    `block` makes a block in the same way as timed blocks are made, and `calls` is the number of calls in a timed block.
    If a call is slow, by `seconds_per_call`, fewer calls are made. `unseen_seed` is a random number that the program
    does not know.
    """
    counts: dict[str, Any] = {"seen": count_operations(adapter, work, lambda: block(1, blocks.ignore_result))}
    if seconds_per_call > QUICK_SECONDS:
        return ExtraBlock(counts)
    if seconds_per_call <= MANY_SECONDS:
        # As many calls as in a timed block, but at least a random number, which no program can expect.
        random_calls = MINIMUM_CALLS + unseen_seed % (MAXIMUM_CALLS - MINIMUM_CALLS)
        many_calls = max(min(calls, MAXIMUM_REPLAYED_CALLS), random_calls)
        counts["many_calls"] = many_calls
        counts["many"] = count_operations(adapter, work, lambda: block(many_calls, blocks.ignore_result))
    # With a single call, a program that skips only the work of later calls would not be noticed.
    block_calls = max(2, min(calls, MAXIMUM_REPLAYED_CALLS))
    results: list[Any] = []
    block(block_calls, results.append)
    return ExtraBlock(counts, block_calls, _export_arrays(adapter, program.export, work, results.pop()))


def replay_block(adapter: Adapter, program: Program, work: Work, block: ExtraBlock) -> dict[str, Any]:
    """Compare the outputs of a block with the outputs of as many untimed calls, because a program may skip timed work.

    Returns the comparison, and the block's counts of operations, as fields of `Dependence`; only the counts if the
    block has no outputs.
    """
    if block.outputs is None:  # a call takes too long to be repeated
        return dict(block.counts)

    def untimed_outputs() -> NamedArrays:
        """Make as many untimed calls as the block has, and return their outputs."""
        return _export_arrays(adapter, program.export, work, _run_untimed(work, block.calls))

    # The untimed calls are made twice, because the outputs of two equal runs may differ too, for example if threads add
    # numbers in another order.
    first_outputs, second_outputs = untimed_outputs(), untimed_outputs()
    replay = Replay(
        calls=block.calls,
        timed=relative_distance(block.outputs, first_outputs),
        untimed=relative_distance(second_outputs, first_outputs),
    )
    return {**block.counts, "replay": replay}


def count_operations(adapter: Adapter, work: Work, run: Callable[[], object]) -> dict[str, int]:
    """Call `run`, and count the operations that it dispatches, by name.

    `run` begins with a fresh state; the operations that make a fresh state are subtracted.
    """
    state_counts = adapter.accounting.count_dispatched(lambda: work.synchronise(work.fresh()))
    total_counts = adapter.accounting.count_dispatched(run)
    counts = {name: count - state_counts.get(name, 0) for name, count in total_counts.items()}
    return {name: count for name, count in counts.items() if count > 0}


def _export_arrays(adapter: Adapter, export: Export, work: Work, result: Any) -> NamedArrays:
    """Return the arrays that `export` returns for a call's result, as NumPy arrays."""
    state, out = result
    return export_numbers(adapter, export, export(state, work.last_out(out)))


def _run_untimed(work: Work, calls: int) -> Any:
    """Make `calls` calls from a fresh state; return the last call's result.

    This does not call the functions that time blocks, because a program could see them in its call stack.
    """
    state, out = work.fresh(), None
    for _ in range(calls):
        state, out = work.call(state, work.batches)
    work.synchronise((state, out))
    return state, out


def relative_distance(outputs: NamedArrays, expected_outputs: NamedArrays) -> float | None:
    """Return the largest difference over all arrays, each divided by the root mean square of the expected array.

    Both mappings have arrays of any shapes under the same names. Only elements that are finite in both arrays count;
    without such elements, the result is None. A difference from an array of zeros is not divided. If the shapes of two
    arrays differ, the result is the largest float.
    """
    import numpy as np

    largest: float | None = None
    real_outputs = as_real(outputs)
    for name, expected_array in as_real(expected_outputs).items():
        array = np.asarray(real_outputs[name])
        if array.shape != np.shape(expected_array):
            return float(np.finfo(np.float64).max)
        is_finite = np.isfinite(array) & np.isfinite(expected_array)
        if not is_finite.any():
            continue
        actual = array[is_finite].astype(np.float64)
        expected = expected_array[is_finite].astype(np.float64)
        scale = float(np.sqrt(np.mean(np.square(expected)))) or 1.0  # zeros have no scale
        distance = float(np.max(np.abs(actual - expected))) / scale
        largest = max(largest or 0.0, distance)
    return largest
