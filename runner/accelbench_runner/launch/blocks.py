"""Plan and time blocks: runs of calls between two synchronisations.

The code depends on a clock and on calls, not on any framework. What decides how much is measured is fixed before the
first measured block and never depends on the times of measured blocks.
"""

import gc
import math
import statistics
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.work import Work

BLOCK_SECONDS = 0.010
"""Minimum length of a block: ten thousand times a monotonic clock's resolution, and longer than the scheduling slice of
another process."""
OVERHEAD_SHARE = 0.001
"""Maximum share of a block for reading the clock and synchronising: a tenth of the smallest margin in use."""
LATE_SHARE = 0.04
"""Maximum share of a block for work that its last call leaves behind untimed, such as freeing memory; a little less
than the check `unsynchronised` allows."""
FEW_CALLS = 1 / LATE_SHARE
"""Minimum calls in a block for which the work that the last one leaves behind stays below that share."""
WARM_UP_SECONDS = 0.3
"""Minimum time for caches, allocators and the processor's frequency to settle, after the first call and parity."""
WARM_UP_CALLS = 2
"""Minimum number of calls of the warm-up."""
BUDGET_SECONDS = 1.0
"""Planned seconds of all blocks of a launch. Launches, not blocks, are the independent samples, so more launches are
worth more than more blocks."""
MINIMUM_BLOCKS = 10
MAXIMUM_BLOCKS = 200
LONG_BUDGET_SECONDS = 3.0
"""Maximum seconds of blocks after which another block begins, once there are `MINIMUM_LONG_BLOCKS`."""
MINIMUM_LONG_BLOCKS = 3
"""Minimum number of long blocks: a median of two is a mean."""
MAXIMUM_REPLANS = 3
"""Maximum number of plans that are voided before the launch measures by the last one, whatever its blocks' length."""
LATENCY_CALLS = 1000
"""Number of calls of a launch: ten of them lie above the 99th percentile."""
LATENCY_BUDGET_SECONDS = 30.0
"""Maximum seconds of calls after which another call begins, once there are `MINIMUM_LATENCY_CALLS`."""
MINIMUM_LATENCY_CALLS = 100
"""Minimum number of calls: with fewer, the 99th percentile is the slowest call."""


def _ignore(_result: Any) -> None:
    pass


@dataclass(frozen=True)
class BlockPlan:
    """Describe the number and the length of the blocks to measure."""

    calls: int
    """Calls in a block."""
    blocks: int
    length: float = 0.0
    """Minimum planned seconds of a block; a block under half of it voids the plan."""
    minimum_blocks: int = MINIMUM_LONG_BLOCKS
    """Number of blocks that are measured whatever the budget."""
    budget: float = LONG_BUDGET_SECONDS
    """Maximum seconds of blocks after which another block begins, once there are `minimum_blocks`."""
    keep_garbage: bool = True
    """True: garbage is collected before each block; False: Python decides when, as in production."""


LATENCY = BlockPlan(
    calls=1,
    blocks=LATENCY_CALLS,
    minimum_blocks=MINIMUM_LATENCY_CALLS,
    budget=LATENCY_BUDGET_SECONDS,
    keep_garbage=False,
)
"""Plan of the protocol `latency`: every call is a block, synchronised, from a fresh state."""


def time_calls(work: Work, calls: int, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> float:
    """Return the seconds of `calls` calls in a row, from a fresh state on.

    `inspect` gets the last call's result once the clock has stopped.
    """
    state = work.fresh()
    work.synchronise(state)
    if work.evict:
        work.evict()
    out: Any = None
    call, batches = work.call, work.batches
    events = work.events if calls > 1 else None  # for a single call, recording events would take a noticeable share
    began = clock.seconds()
    if events:
        events.start()
    for _ in range(calls):
        state, out = call(state, batches)
    if events:
        events.stop()
    work.synchronise((state, out))
    seconds = clock.seconds() - began
    if events:
        events.compare(seconds)
    inspect((state, out))
    return seconds


def warm_up(work: Work, clock: Clock, longest_run: float = BLOCK_SECONDS) -> float:
    """Make calls in growing runs for the minimum time and number; return the seconds per call of the fastest run.

    Blocks planned by the fastest run rarely turn out too short once everything has settled. Runs grow until they take
    `longest_run` seconds; with 0, every run is a single call.
    """
    calls, elapsed, calls_made, fastest = 1, 0.0, 0, math.inf
    while elapsed < WARM_UP_SECONDS or calls_made < WARM_UP_CALLS:
        seconds = time_calls(work, calls, clock)
        elapsed += seconds
        calls_made += calls
        if seconds > 0:  # otherwise the clock's resolution is too low
            fastest = min(fastest, seconds / calls)
        if seconds < longest_run:
            calls *= 2
    return fastest


def overhead_seconds(work: Work, clock: Clock, readings: int = 20) -> float:
    """Return the median cost of timing a block: two clock readings, and a synchronisation with nothing to wait for.

    With a mean, one interruption by another process could make every block a hundred times longer.
    """
    state = work.fresh()
    work.synchronise(state)
    costs = []
    for _ in range(readings):
        began = clock.seconds()
        work.synchronise(state)
        clock.seconds()
        costs.append(clock.seconds() - began)
    return statistics.median(costs)


def plan(seconds_per_call: float, overhead: float, late_seconds: float = 0.0) -> BlockPlan:
    """Plan blocks within the budget, so long that overhead and late work are small shares of a block.

    `overhead` is the seconds of timing one block, `late_seconds` the work that a block's last call leaves behind
    untimed. Late work lengthens a block to at most `LONG_BUDGET_SECONDS`: more cannot come from the last call alone.
    """
    late_work_length = min(late_seconds / LATE_SHARE, LONG_BUDGET_SECONDS)
    return _plan(seconds_per_call, max(BLOCK_SECONDS, overhead / OVERHEAD_SHARE, late_work_length))


def _plan(seconds_per_call: float, length: float) -> BlockPlan:
    """Plan blocks of at least `length` seconds."""
    calls = max(1, math.ceil(length / seconds_per_call))
    block = calls * seconds_per_call
    blocks = min(MAXIMUM_BLOCKS, max(MINIMUM_BLOCKS, round(BUDGET_SECONDS / block)))
    return BlockPlan(calls=calls, blocks=blocks, length=length)


@dataclass(frozen=True)
class MeasuredBlocks:
    """Hold the blocks of a launch, and the number of plans that were voided."""

    units: int
    """Units of work in each block."""
    seconds: tuple[float, ...]
    """Seconds of each block."""
    replanned: int = 0


def measure_as_planned(
    work: Work, planned: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = _ignore
) -> MeasuredBlocks:
    """Measure the planned blocks, and replan if one turns out far too short.

    Other load during the warm-up makes calls look slow, so blocks turn out short once the machine is quiet. A block
    under half of its planned length voids the plan: its blocks count as warm-up, and all are measured anew with more
    calls each, as in torch.utils.benchmark's blocked_autorange. Only the length of blocks decides this, never how
    blocks compare.
    """
    for replanned in range(MAXIMUM_REPLANS):
        blocks: list[float] = []
        for seconds in measure(work, planned, clock, inspect):
            if seconds < planned.length / 2:
                measurable = seconds or planned.length / 4
                planned = _plan(measurable / planned.calls, planned.length)
                break
            blocks.append(seconds)
        else:
            return MeasuredBlocks(planned.calls * work.units, tuple(blocks), replanned)
    blocks = list(measure(work, planned, clock, inspect))
    return MeasuredBlocks(planned.calls * work.units, tuple(blocks), MAXIMUM_REPLANS)


def measure(work: Work, planned: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> Iterator[float]:
    """Yield the seconds of the planned blocks within the budget, with garbage collection between blocks if planned."""
    elapsed = 0.0
    for number in range(planned.blocks):
        if number >= planned.minimum_blocks and elapsed >= planned.budget:
            return
        if planned.keep_garbage:
            gc.collect()
        seconds = time_calls(work, planned.calls, clock, inspect)
        elapsed += seconds
        yield seconds


def episode(work: Work, batches: Iterable[Any], clock: Clock) -> tuple[MeasuredBlocks, Any]:
    """Time one pass over the batches from a fresh state, a block per call, compilation included.

    Returns the blocks and the last call's result.
    """
    state = work.fresh()
    work.synchronise(state)
    timed: list[float] = []
    out: Any = None
    for batch in batches:
        began = clock.seconds()
        result = work.call(state, batch)
        work.check(result)
        state, out = result
        work.synchronise((state, out))
        timed.append(clock.seconds() - began)
    return MeasuredBlocks(work.units, tuple(timed)), (state, out)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable automatic garbage collection, and freeze existing objects so that explicit collections are quick."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
