"""Plan and time blocks: runs of calls between two synchronisations.

The code depends on a clock and on calls, not on any framework. `inspect` is a function that gets the last call's result
of each block, after the clock has stopped; `out` is what a step returns besides the new state. The number and the
length of blocks are planned before the first measured block. If a block takes less than half of its planned length, all
blocks are planned and measured again. Nothing else about measured times changes the plan.
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
"""Maximum share of a block for reading the clock and synchronising: a tenth of the smallest equivalence margin."""
LATE_SHARE = 0.04
"""Maximum share of a block for work that its last call leaves behind untimed, such as freeing memory; a little less
than the check `unsynchronised` allows."""
ENOUGH_CALLS = 1 / LATE_SHARE
"""Number of calls in a block from which on the late work of its last call, if no longer than a call, is at most
`LATE_SHARE` of the block."""
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
"""Seconds of blocks after which no further block begins, once there are `MINIMUM_LONG_BLOCKS`."""
MINIMUM_LONG_BLOCKS = 3
"""Minimum number of long blocks: a median of two is a mean."""
MAXIMUM_REPLANS = 3
"""Maximum number of plans that are voided. The blocks of the next plan count even if they are short."""
LATENCY_CALLS = 1000
"""Planned number of calls of a launch: ten of them lie above the 99th percentile."""
LATENCY_BUDGET_SECONDS = 30.0
"""Seconds of calls after which no further call begins, once there are `MINIMUM_LATENCY_CALLS`."""
MINIMUM_LATENCY_CALLS = 100
"""Minimum number of calls: with fewer, the 99th percentile is the slowest call."""


def ignore_result(_result: Any) -> None:
    """Do nothing with the result of a block."""


@dataclass(frozen=True)
class BlockPlan:
    """Describe the number and the length of the blocks to measure."""

    calls: int
    """Calls in a block."""
    blocks: int
    length: float = 0.0
    """Minimum planned seconds of a block. A block under half of this length voids the plan."""
    minimum_blocks: int = MINIMUM_LONG_BLOCKS
    """Number of blocks that are measured even beyond the budget."""
    budget: float = LONG_BUDGET_SECONDS
    """Seconds of blocks after which no further block begins, once there are `minimum_blocks`."""
    collects_garbage: bool = True
    """True: garbage is collected before each block; False: Python decides when, as in production."""


LATENCY = BlockPlan(
    calls=1,
    blocks=LATENCY_CALLS,
    minimum_blocks=MINIMUM_LATENCY_CALLS,
    budget=LATENCY_BUDGET_SECONDS,
    collects_garbage=False,
)
"""Plan of the protocol `latency`: every block is one call, from a fresh state."""


def time_calls(work: Work, calls: int, clock: Clock, inspect: Callable[[Any], None] = ignore_result) -> float:
    """Return the seconds that `calls` calls in a row take, from a fresh state.

    `inspect` is called with the last call's result after the clock has stopped.
    """
    state = work.fresh()
    work.synchronise(state)
    if work.evict:
        work.evict()  # the workload measures with cold caches
    out: Any = None
    call, batches = work.call, work.batches  # local names, which the loop finds sooner than attributes
    # Recording the device's events would take too large a part of a single call's time.
    events = work.events if calls > 1 else None
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
    """Warm up by runs of more and more calls; return the seconds per call of the fastest run.

    The number of calls is doubled until a run takes `longest_run` seconds. The fastest run counts, because blocks that
    are planned with it are rarely too short.
    """
    calls, elapsed_seconds, calls_so_far, fastest_seconds = 1, 0.0, 0, math.inf
    while elapsed_seconds < WARM_UP_SECONDS or calls_so_far < WARM_UP_CALLS:
        seconds = time_calls(work, calls, clock)
        elapsed_seconds += seconds
        calls_so_far += calls
        if seconds > 0:  # a run takes 0 s if the clock's resolution is too low
            fastest_seconds = min(fastest_seconds, seconds / calls)
        if seconds < longest_run:
            calls *= 2
    return fastest_seconds


def overhead_seconds(work: Work, clock: Clock, repetitions: int = 20) -> float:
    """Return the median seconds that timing a block costs: two readings of the clock, and a synchronisation."""
    state = work.fresh()
    work.synchronise(state)
    costs = []
    for _ in range(repetitions):
        began = clock.seconds()
        work.synchronise(state)
        # A block takes two readings of the clock. `costs` gets about the second half of the first reading and the first
        # half of the last, together one. So read the clock once more in between.
        clock.seconds()
        costs.append(clock.seconds() - began)
    return statistics.median(costs)  # a mean grows with a single interruption by another process


def plan(seconds_per_call: float, overhead: float, late_seconds: float = 0.0) -> BlockPlan:
    """Plan blocks so long that the errors of timing are small in comparison.

    Args:
        seconds_per_call: Seconds of one call.
        overhead: Seconds that timing a block takes, as `overhead_seconds` measures them.
        late_seconds: Seconds for which the process or the device still works for the last call after the block's clock
            has stopped, for example to free memory.
    """
    # Late work can grow with the number of calls, and then no block is long enough: so this length has a maximum. The
    # overhead is short and the same for every block, so the length for it needs none.
    length_for_late_work = min(late_seconds / LATE_SHARE, LONG_BUDGET_SECONDS)
    length_for_overhead = overhead / OVERHEAD_SHARE
    return _plan_of_length(seconds_per_call, max(BLOCK_SECONDS, length_for_overhead, length_for_late_work))


def _plan_of_length(seconds_per_call: float, length: float) -> BlockPlan:
    """Plan blocks of at least `length` seconds, and as many as fill `BUDGET_SECONDS`.

    The number of blocks is at least `MINIMUM_BLOCKS` and at most `MAXIMUM_BLOCKS`.
    """
    calls = max(1, math.ceil(length / seconds_per_call))
    block_seconds = calls * seconds_per_call
    blocks_in_budget = round(BUDGET_SECONDS / block_seconds)
    blocks = min(MAXIMUM_BLOCKS, max(MINIMUM_BLOCKS, blocks_in_budget))
    return BlockPlan(calls=calls, blocks=blocks, length=length)


@dataclass(frozen=True)
class MeasuredBlocks:
    """Hold the measured blocks of a launch."""

    units: int
    """Units of work in each block."""
    seconds: tuple[float, ...]
    """Seconds of each block."""
    voided_plans: int = 0
    """Number of plans that were voided before these blocks."""
    response_seconds: tuple[float, ...] = ()
    """Seconds of each request from its arrival to its end, with the protocol `arrivals`; else empty."""


def measure_as_planned(
    work: Work, block_plan: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = ignore_result
) -> MeasuredBlocks:
    """Measure the planned blocks; if a block takes less than half of its planned length, plan and measure all again.

    Other load during the warm-up makes calls look slow, and then too few calls are planned for a block. After
    `MAXIMUM_REPLANS` plans that proved too short, blocks of any length count.
    """
    for voided_plans in range(MAXIMUM_REPLANS):
        minimum_seconds = block_plan.length / 2
        block_seconds = list(_measure_until_short(work, block_plan, minimum_seconds, clock, inspect))
        last_seconds = block_seconds[-1]  # only the last block can be too short
        if last_seconds >= minimum_seconds:
            return MeasuredBlocks(block_plan.calls * work.units, tuple(block_seconds), voided_plans)
        # If the clock's resolution is too low, the block took 0 s: then try four times as many calls.
        nonzero_seconds = last_seconds or block_plan.length / 4
        block_plan = _plan_of_length(nonzero_seconds / block_plan.calls, block_plan.length)
    block_seconds = list(measure(work, block_plan, clock, inspect))
    return MeasuredBlocks(block_plan.calls * work.units, tuple(block_seconds), MAXIMUM_REPLANS)


def _measure_until_short(
    work: Work, block_plan: BlockPlan, minimum_seconds: float, clock: Clock, inspect: Callable[[Any], None]
) -> Iterator[float]:
    """Yield the seconds of each planned block, up to and including the first shorter than `minimum_seconds`."""
    for seconds in measure(work, block_plan, clock, inspect):
        yield seconds
        if seconds < minimum_seconds:
            return


def measure(
    work: Work, block_plan: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = ignore_result
) -> Iterator[float]:
    """Measure the planned blocks, and yield the seconds of each; call `inspect` with the last result of each block.

    Stop early when the plan's budget of seconds is used up and its minimum number of blocks has been measured.
    """
    elapsed = 0.0
    for finished_blocks in range(block_plan.blocks):
        if finished_blocks >= block_plan.minimum_blocks and elapsed >= block_plan.budget:
            return
        if block_plan.collects_garbage:
            gc.collect()
        seconds = time_calls(work, block_plan.calls, clock, inspect)
        elapsed += seconds
        yield seconds


def episode(work: Work, batches: Iterable[Any], clock: Clock) -> tuple[MeasuredBlocks, Any]:
    """Time each call of one pass over the batches, including compilations; each call is a block.

    Returns the blocks, and the last call's result: the final state and the `out` of that call.
    """
    state = work.fresh()
    work.synchronise(state)
    block_seconds: list[float] = []
    out: Any = None
    for batch in batches:
        began = clock.seconds()
        result = work.call(state, batch)
        work.check(result)
        state, out = result
        work.synchronise((state, out))
        block_seconds.append(clock.seconds() - began)
    return MeasuredBlocks(work.units, tuple(block_seconds)), (state, out)


@contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Disable Python's automatic garbage collection inside the `with` block."""
    gc.collect()
    gc.freeze()  # makes explicit collections inside the context quick
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
