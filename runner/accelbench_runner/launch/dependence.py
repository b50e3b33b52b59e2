"""Check that a step depends on its inputs and does its work in every call, after its blocks have been timed.

A program that computes with captured arrays, or returns remembered results, is right on the inputs that it was built
from. So it gets other inputs of the same shapes, from a seed that it has not seen, and the judge compares the results.
Operations are counted as the framework runs them: repeated calls on the same inputs must run as many as the first.

A program may inspect the call stack to detect timing. So one more block is made by the functions that make timed
blocks: its results must equal those of untimed calls, and its operations are counted too. Operations of the export,
which is not timed, are counted as well.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from accelbench.catalogue import inputs, workload_checks
from accelbench.launch.facts import Dependence, Replay
from accelbench.workload import NamedArrays, Program, VariantKind, Workload
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Adapter
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks
from accelbench_runner.launch.captured import captured_arrays
from accelbench_runner.outputs import UNSEEN, as_real, save

ROUNDS = 2
"""Number of first rounds that are checked: a program treats its inputs alike in every launch."""
RUNS = (1, 2, 3, 4)
"""Number of calls in each run on inputs that were used before."""
MINIMUM_CALLS, MAXIMUM_CALLS = 16, 64
"""Range of the calls in a longer run if a block has fewer; the number is random, so no program can expect it."""
QUICK_SECONDS = 0.25
"""Maximum seconds of a call that is repeated often and replayed; a longer one is repeated once."""
MANY_SECONDS = 0.02
"""Maximum seconds of a call whose operations are counted in a long run."""
MAXIMUM_REPLAYED_CALLS = 4096
"""Maximum calls of a block that are replayed, twice and untimed: a program may be fast only while it is timed."""

Export = Callable[[Any, Any], Mapping[str, Any]]
"""Takes a state and the last out, and returns the arrays to compare by name."""


@dataclass(frozen=True)
class Subject:
    """Hold a variant's timed program without the inputs that it was built from."""

    workload: Workload
    parameters: Any
    kind: VariantKind
    seed: int
    """Seed of the inputs that it was built from."""
    step: Callable[..., Any]
    export: Export
    work: Work
    """Work with the compiled call."""


def without_inputs(work: Work) -> Work:
    """Return the work without its inputs, so that their memory can be freed before other inputs are made."""
    return replace(work, fresh=lambda: None, batches=None)


def examine(adapter: Adapter, subject: Subject, unseen_seed: int, directory: Path, clock: Clock) -> Dependence:
    """Run the step on other inputs, and write what the judge compares to `unseen.npz`.

    An exception on unseen inputs is reported, not raised: the step has passed on its own inputs.
    """
    captured = captured_arrays(subject.step) or adapter.accounting.constants()
    try:
        own_arrays = inputs.generate(subject.workload, subject.parameters, subject.seed)
        arrays = inputs.generate_unseen(subject.workload, subject.parameters, own_arrays, unseen_seed)
        if inputs.digest(arrays) == inputs.digest(own_arrays):
            unable = "no other inputs can be made: no array of floats is other than zero"
            return Dependence(captured=captured, unable=unable)
        # A new instance: building a second program must not refresh what the timed one remembers in its workload.
        build = getattr(type(subject.workload)(), subject.kind.method)
        program = workload_checks.call_method(build, Program, subject.parameters, arrays, adapter)
        del own_arrays, arrays
        other = adapter.prepare(program)
        work = replace(subject.work, fresh=other.fresh, batches=other.batches)
    except workload_checks.ERRORS as error:
        unable = f"no other inputs can be made: {workload_checks.describe(error)}"
        return Dependence(captured=captured, unable=unable)
    # Export with the timed program: one built from these inputs could export the right result whatever its step does.
    trial = _Trial(adapter, subject.export, work, clock)
    fields: dict[str, Any] = {"captured": captured}
    try:
        began = clock.seconds()
        fields["dispatched"], first = trial.run(1)
        seconds = clock.seconds() - began
        save(directory / UNSEEN, trial.export_result(first))
        fields["units"] = work.units
        if seconds > QUICK_SECONDS:
            return Dependence(**fields, again=[trial.run(1)[0]])
        export_counts = [trial.count_export(first)]
        del first
        repetitions = [trial.run(calls) for calls in RUNS]
        fields["again"] = [counts for counts, _ in repetitions]
        fields["exported"] = [*export_counts, trial.count_export(repetitions[-1][1])]
    except workload_checks.ERRORS as error:
        ran_out = isinstance(error, MemoryError) or adapter.out_of_memory(error)
        fields["unable" if ran_out else "raised"] = workload_checks.describe(error)
    return Dependence(**fields)


@dataclass(frozen=True)
class _Trial:
    """Run the timed program on other inputs."""

    adapter: Adapter
    export: Export
    work: Work
    clock: Clock

    def run(self, calls: int) -> tuple[dict[str, int], Any]:
        """Make a block of calls; return its operations and the last call's result."""
        results: list[Any] = []

        def block() -> None:
            blocks.time_calls(self.work, calls, self.clock, results.append)

        return count_operations(self.adapter, self.work, block), results[-1]

    def export_result(self, result: Any) -> NamedArrays:
        """Return the arrays that the judge compares."""
        return _export_arrays(self.adapter, self.export, self.work, result)

    def count_export(self, result: Any) -> dict[str, int]:
        """Count the operations of an export, after a first one has compiled it."""
        self.export_result(result)
        return self.adapter.accounting.count_dispatched(lambda: self.export_result(result))


Block = Callable[[int, Callable[[Any], None]], object]
"""Makes a block of that many calls with the functions that make timed blocks, and passes on the last call's result."""


@dataclass(frozen=True)
class ExtraBlock:
    """Hold the operations and the outputs of one more block, made by the functions that make timed blocks."""

    counts: Mapping[str, Any]
    """Operations, by fields of `Dependence`."""
    calls: int = 0
    outputs: NamedArrays | None = None
    """None if a call takes too long to be repeated."""


def make_extra_block(
    adapter: Adapter, program: Program, work: Work, block: Block, calls: int, seconds: float, unseen_seed: int
) -> ExtraBlock:
    """Count the operations of one call and of a long run, and export the result of a block of `calls`.

    `seconds` is the length of a call: the long run is left out above `MANY_SECONDS`, and the block above
    `QUICK_SECONDS`.
    """
    counts: dict[str, Any] = {"seen": count_operations(adapter, work, lambda: block(1, lambda _: None))}
    if seconds > QUICK_SECONDS:
        return ExtraBlock(counts)
    if seconds <= MANY_SECONDS:
        counts["many_calls"] = many_calls = max(
            min(calls, MAXIMUM_REPLAYED_CALLS), MINIMUM_CALLS + unseen_seed % (MAXIMUM_CALLS - MINIMUM_CALLS)
        )
        counts["many"] = count_operations(adapter, work, lambda: block(many_calls, lambda _: None))
    calls = max(2, min(calls, MAXIMUM_REPLAYED_CALLS))
    results: list[Any] = []
    block(calls, results.append)
    return ExtraBlock(counts, calls, _export_arrays(adapter, program.export, work, results.pop()))


def replay_block(adapter: Adapter, program: Program, work: Work, block: ExtraBlock) -> dict[str, Any]:
    """Return the block's counts with `replay`: the distance of its results from those of untimed calls.

    A second run of untimed calls shows how far results differ by themselves. Nothing is timed here.
    """
    if block.outputs is None:
        return dict(block.counts)
    untimed = [_export_arrays(adapter, program.export, work, _run_untimed(work, block.calls)) for _ in range(2)]
    replay = Replay(
        calls=block.calls,
        timed=relative_distance(block.outputs, untimed[0]),
        untimed=relative_distance(untimed[1], untimed[0]),
    )
    return {**block.counts, "replay": replay}


def count_operations(adapter: Adapter, work: Work, run: Callable[[], object]) -> dict[str, int]:
    """Count each operation in `run`, without those that create the fresh state."""
    fresh = adapter.accounting.count_dispatched(lambda: work.synchronise(work.fresh()))
    total = adapter.accounting.count_dispatched(run)
    return {name: added for name, number in total.items() if (added := number - fresh.get(name, 0)) > 0}


def _export_arrays(adapter: Adapter, export: Export, work: Work, result: Any) -> NamedArrays:
    """Return the arrays that the program exports for a call's result, in NumPy and as real numbers."""
    state, out = result
    return as_real(adapter.to_numpy(export(state, work.last_out(out))))


def _run_untimed(work: Work, calls: int) -> Any:
    """Make calls from a fresh state on, without the functions that time blocks; return the last result."""
    state, out = work.fresh(), None
    for _ in range(calls):
        state, out = work.call(state, work.batches)
    work.synchronise((state, out))
    return state, out


def relative_distance(one: NamedArrays, other: NamedArrays) -> float | None:
    """Return the largest difference between two numbers, relative to their array; None if no number is finite in both.

    The scale is the root mean square of the numbers of `other` that are finite in both, or 1 if all are zero. Arrays of
    different shapes are at the largest distance.
    """
    import numpy as np

    worst: float | None = None
    for name, values in other.items():
        array = np.asarray(one[name])
        if array.shape != np.shape(values):
            return float(np.finfo(np.float64).max)
        both = np.isfinite(array) & np.isfinite(values)
        if not both.any():
            continue
        expected, actual = values[both].astype(np.float64), array[both].astype(np.float64)
        scale = float(np.sqrt(np.mean(np.square(expected)))) or 1.0
        worst = max(worst or 0.0, float(np.max(np.abs(actual - expected))) / scale)
    return worst
