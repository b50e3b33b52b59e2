"""Whether a step works on what it is given, and works every time: a second look, once its blocks have been timed.

A program that computes with what it has captured, or remembers what it has computed, is right on the inputs that it was
built from. So it is given others of the same shapes, from a seed that it was never told, and the judge compares what it
returns. Operations are counted as the framework runs them: calls on inputs that were seen before must run as many as
the first one did.

A program may look at its callers to tell whether it is being timed. So one more block is made where the timed ones
were, by the same functions: what it returns must be what the same calls return where nothing is timed, and its
operations are counted there too. What is left for the way out, where nobody takes the time, is counted as well.
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
"""Looked at in the first rounds: what a program does with its inputs is every launch's alike."""
RUNS = (1, 2, 3, 4)
"""Calls in each run on inputs that the one call before has seen."""
FEWEST, MOST = 16, 64
"""Calls in a longer run where a block has fewer, so many that no program can know it beforehand."""
QUICK_SECONDS = 0.25
"""A call that takes longer is made again once, and neither in runs nor timed against untimed: blocks hold one of it."""
MANY_SECONDS = 0.02
"""A call that takes longer, while it is counted, is not made many times."""
MOST_REPLAYED = 4096
"""Calls of a block, made twice untimed: a program that is fast only while it is timed may take its time there."""


@dataclass(frozen=True)
class Subject:
    """A variant's program that has been timed, less the inputs that it was built from."""

    workload: Workload
    parameters: Any
    kind: VariantKind
    seed: int
    """Of the inputs that it was built from."""
    step: Callable[..., Any]
    export: Callable[[Any, Any], Mapping[str, Any]]
    work: Work
    """Its `call` is the compiled one."""


def forget_inputs(work: Work) -> Work:
    """The work without its inputs, which may then leave memory before others come."""
    return replace(work, fresh=lambda: None, batches=None)


def examine(adapter: Adapter, subject: Subject, unseen_seed: int, directory: Path, clock: Clock) -> Dependence:
    """What the step does with other inputs; writes what the judge compares, `unseen.npz`.

    What the step raises on unseen inputs is reported, not raised: it has passed with those it was built from.
    """
    captured = captured_arrays(subject.step) or adapter.accounting.constants()
    try:
        seen = inputs.generate(subject.workload, subject.parameters, subject.seed)
        arrays = inputs.unseen(subject.workload, subject.parameters, seen, unseen_seed)
        if inputs.digest(arrays) == inputs.digest(seen):
            unable = "no other inputs can be made: no array of floats is other than zero"
            return Dependence(captured=captured, unable=unable)
        # Another instance: what the one before has kept in itself would be renewed by a second building.
        build = getattr(type(subject.workload)(), subject.kind.method)
        program = workload_checks.returned(build, Program, subject.parameters, arrays, adapter)
        del seen, arrays
        other = adapter.prepare(program)
        work = replace(subject.work, fresh=other.fresh, batches=other.batches)
    except workload_checks.RAISED as error:
        unable = f"no other inputs can be made: {workload_checks.describe(error)}"
        return Dependence(captured=captured, unable=unable)
    # A program built from these inputs could export what is right for them, whatever its step does.
    trial = _Trial(adapter, subject.export, work, clock)
    found: dict[str, Any] = {"captured": captured}
    try:
        began = clock.seconds()
        found["dispatched"], first = trial.timed(1)
        took = clock.seconds() - began
        save(directory / UNSEEN, trial.exported(first))
        found["units"] = work.units
        if took > QUICK_SECONDS:
            return Dependence(**found, again=[trial.timed(1)[0]])
        exported = [trial.exporting(first)]
        del first
        again = [trial.timed(calls) for calls in RUNS]
        found["again"] = [counted for counted, _ in again]
        found["exported"] = [*exported, trial.exporting(again[-1][1])]
    except workload_checks.RAISED as error:
        ran_out = isinstance(error, MemoryError) or adapter.out_of_memory(error)
        found["unable" if ran_out else "raised"] = workload_checks.describe(error)
    return Dependence(**found)


@dataclass(frozen=True)
class _Trial:
    """The timed program on other inputs."""

    adapter: Adapter
    export: Callable[[Any, Any], Mapping[str, Any]]
    work: Work
    clock: Clock

    def timed(self, calls: int) -> tuple[dict[str, int], Any]:
        """Operations run in so many calls, timed as a block is, from a fresh state; and what the last one returned."""
        results: list[Any] = []
        counted = count(
            self.adapter, self.work, lambda: blocks.time_calls(self.work, calls, self.clock, results.append)
        )
        return counted, results[-1]

    def exported(self, result: Any) -> NamedArrays:
        """What the judge compares, of what a call returned."""
        return _exported(self.adapter, self.export, result)

    def exporting(self, result: Any) -> dict[str, int]:
        """Operations run on the way out, once it has been compiled."""
        self.exported(result)
        return self.adapter.accounting.dispatched(lambda: self.exported(result))


Block = Callable[[int, Callable[[Any], None]], object]
"""Makes a block of so many calls where the timed ones were made, and shows what the last of them returned."""


@dataclass(frozen=True)
class Witness:
    """What one more block did, made where the timed ones were."""

    counted: Mapping[str, Any]
    """Fields of `Dependence`."""
    calls: int = 0
    outputs: NamedArrays | None = None
    """None: a call takes too long to be made again."""


def witness(
    adapter: Adapter, program: Program, work: Work, block: Block, calls: int, seconds: float, unseen_seed: int
) -> Witness:
    """What blocks do of one call, and of `calls` or of many at random; a call takes so many `seconds`."""
    counted: dict[str, Any] = {"seen": count(adapter, work, lambda: block(1, lambda _: None))}
    if seconds > QUICK_SECONDS:
        return Witness(counted)
    if seconds <= MANY_SECONDS:
        counted["many_calls"] = many = max(min(calls, MOST_REPLAYED), FEWEST + unseen_seed % (MOST - FEWEST))
        counted["many"] = count(adapter, work, lambda: block(many, lambda _: None))
    calls = max(2, min(calls, MOST_REPLAYED))
    results: list[Any] = []
    block(calls, results.append)
    return Witness(counted, calls, _exported(adapter, program.export, results.pop()))


def retold(adapter: Adapter, program: Program, work: Work, seen: Witness) -> dict[str, Any]:
    """The witness's counts with `replay`: how far its results are from those of untimed calls, and these from another.

    Called from where nothing is timed.
    """
    if seen.outputs is None:
        return dict(seen.counted)
    untimed = [_exported(adapter, program.export, _call_by_call(work, seen.calls)) for _ in range(2)]
    replay = Replay(
        calls=seen.calls,
        timed=distance(seen.outputs, untimed[0]),
        untimed=distance(untimed[1], untimed[0]),
    )
    return {**seen.counted, "replay": replay}


def count(adapter: Adapter, work: Work, run: Callable[[], object]) -> dict[str, int]:
    """How often each operation runs in `run`, less those that a fresh state takes, with which it begins."""
    beside = adapter.accounting.dispatched(lambda: work.synchronise(work.fresh()))
    inside = adapter.accounting.dispatched(run)
    return {name: more for name, number in inside.items() if (more := number - beside.get(name, 0)) > 0}


def _exported(adapter: Adapter, export: Callable[[Any, Any], Mapping[str, Any]], result: Any) -> NamedArrays:
    """What the judge compares, of what a call returned."""
    state, out = result
    return as_real(adapter.to_numpy(export(state, adapter.last(out))))


def _call_by_call(work: Work, times: int) -> Any:
    state, out = work.fresh(), None
    for _ in range(times):
        state, out = work.call(state, work.batches)
    work.synchronise((state, out))
    return state, out


def distance(one: NamedArrays, other: NamedArrays) -> float | None:
    """The largest difference of any two numbers, as a share of their array's size; None where neither is finite.

    Size is the root mean square of the finite numbers of `other`, or 1 where all are zero.
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
        before, after = values[both].astype(np.float64), array[both].astype(np.float64)
        size = float(np.sqrt(np.mean(np.square(before)))) or 1.0
        worst = max(worst or 0.0, float(np.max(np.abs(after - before))) / size)
    return worst
