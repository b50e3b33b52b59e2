"""Blocks: timed runs of calls between two synchronisations, how long they are, and how many there are.

Pure around a clock and the calls: nothing here knows a framework. Everything that decides how much is measured is fixed
before the first measured block, never by what the measured blocks say.
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
"""A block is at least this long: ten thousand times what a monotonic clock resolves, and longer than a scheduling slice
that a neighbour may take."""
OVERHEAD_SHARE = 0.001
"""Reading the clock and synchronising may be this share of a block: a tenth of the least margin anyone asks for."""
LATE_SHARE = 0.04
"""What a block's last call leaves to be done, such as giving memory back, is not timed: it may be so much of a block,
a little less than the check `unsynchronised` allows."""
FEW_CALLS = 1 / LATE_SHARE
"""With more calls in a block, what the last of them leaves is no such share, unless it is more than a call."""
WARM_UP_SECONDS = 0.3
"""Time for caches, allocators and the processor's clock to settle, after the first call and the parity run."""
WARM_UP_CALLS = 2
BUDGET_SECONDS = 1.0
"""Of measured blocks in a launch: the launch is the unit of randomness, so more launches are worth more than more
blocks."""
MINIMUM_BLOCKS = 10
MAXIMUM_BLOCKS = 200
LONG_BUDGET_SECONDS = 3.0
"""No block begins after this many seconds of blocks, whether a call takes long or what was planned goes slower..."""
MINIMUM_LONG_BLOCKS = 3
"""...unless there are fewer blocks than these: a median of two is a mean."""
MAXIMUM_REPLANS = 3
"""So often a plan may turn out too short before the launch measures with what it has."""
LATENCY_CALLS = 1000
"""The 99th percentile of a launch then has ten calls above it."""
LATENCY_BUDGET_SECONDS = 30.0
"""No call begins after this many seconds of calls..."""
MINIMUM_LATENCY_CALLS = 100
"""...unless there are fewer than these: below, the 99th percentile is the slowest call."""


def _ignore(_result: Any) -> None:
    """Nobody wants to look at the result."""


@dataclass(frozen=True)
class BlockPlan:
    """How much is measured."""

    calls: int
    """Calls in a block."""
    blocks: int
    length: float = 0.0
    """Seconds that a block was meant to take at least; one under half of it voids the plan."""
    least: int = MINIMUM_LONG_BLOCKS
    """Blocks that are measured whatever the budget."""
    budget: float = LONG_BUDGET_SECONDS
    """No block begins after this many seconds of blocks."""
    keep_garbage: bool = True
    """Garbage is collected between blocks and not inside; False: whenever Python likes, as in service."""


LATENCY = BlockPlan(
    calls=1,
    blocks=LATENCY_CALLS,
    least=MINIMUM_LATENCY_CALLS,
    budget=LATENCY_BUDGET_SECONDS,
    keep_garbage=False,
)
"""Every call is a block of its own: synchronised, from a fresh state."""


def time_calls(work: Work, calls: int, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> float:
    """Seconds that `calls` calls take, each on the state that the one before returned; begins with a fresh state.

    `inspect` is shown what the last call returned, once the clock has stopped.
    """
    state = work.fresh()
    work.synchronise(state)
    if work.evict:
        work.evict()
    out: Any = None
    call, batches = work.call, work.batches
    events = work.events if calls > 1 else None  # of a single call, marking its ends would be a noticeable part
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


def warm_up(work: Work, clock: Clock, longest: float = BLOCK_SECONDS) -> float:
    """Calls in growing runs until time and count are reached; returns seconds per call in the fastest run.

    The fastest, so that blocks planned by it hardly turn out shorter than planned once everything has settled. Runs
    grow until they take `longest` seconds; with 0 every call stands alone, as it will be measured.
    """
    calls, elapsed, done, fastest = 1, 0.0, 0, math.inf
    while elapsed < WARM_UP_SECONDS or done < WARM_UP_CALLS:
        seconds = time_calls(work, calls, clock)
        elapsed += seconds
        done += calls
        if seconds > 0:  # else the clock has not seen it
            fastest = min(fastest, seconds / calls)
        if seconds < longest:
            calls *= 2
    return fastest


def overhead_seconds(work: Work, clock: Clock, readings: int = 20) -> float:
    """What timing a block costs: two readings of the clock and a synchronisation with nothing left to wait for.

    The median, so that a neighbour who takes the processor once does not make every block a hundred times longer.
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


def plan(seconds_per_call: float, overhead: float, late: float = 0.0) -> BlockPlan:
    """Blocks long enough for clock, overhead and what goes on for `late` seconds after them, as the budget pays for.

    What is late makes no block longer than all of them may take: more than that is no last call's.
    """
    outlasting = min(late / LATE_SHARE, LONG_BUDGET_SECONDS)
    return _plan(seconds_per_call, max(BLOCK_SECONDS, overhead / OVERHEAD_SHARE, outlasting))


def _plan(seconds_per_call: float, length: float) -> BlockPlan:
    calls = max(1, math.ceil(length / seconds_per_call))
    block = calls * seconds_per_call
    blocks = min(MAXIMUM_BLOCKS, max(MINIMUM_BLOCKS, round(BUDGET_SECONDS / block)))
    return BlockPlan(calls=calls, blocks=blocks, length=length)


@dataclass(frozen=True)
class MeasuredBlocks:
    """The blocks of a launch, and how often its plan was void."""

    units: int
    """Of work in each block."""
    seconds: tuple[float, ...]
    """Of each block."""
    replanned: int = 0


def measure_as_planned(
    work: Work, planned: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = _ignore
) -> MeasuredBlocks:
    """The planned blocks, all by one plan, none of them far too short for it.

    Where others crowd the machine during the warm-up, calls look slow and blocks are planned for that; they turn out
    short once it is quiet. As blocked_autorange of torch.utils.benchmark, blocks are made longer until real ones are
    long enough. A block under half the length it was planned for voids the plan: what was measured by it counts as
    warm-up, and all is measured anew by a longer one. How long blocks are is all that is looked at, never how they
    compare.
    """
    for replanned in range(MAXIMUM_REPLANS):
        blocks: list[float] = []
        for seconds in measure(work, planned, clock, inspect):
            if seconds < planned.length / 2:
                seen = seconds or planned.length / 4
                planned = _plan(seen / planned.calls, planned.length)
                break
            blocks.append(seconds)
        else:
            return MeasuredBlocks(planned.calls * work.units, tuple(blocks), replanned)
    blocks = list(measure(work, planned, clock, inspect))
    return MeasuredBlocks(planned.calls * work.units, tuple(blocks), MAXIMUM_REPLANS)


def measure(work: Work, planned: BlockPlan, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> Iterator[float]:
    """Seconds of the planned blocks within the plan's budget; garbage is collected between them and not inside."""
    elapsed = 0.0
    for number in range(planned.blocks):
        if number >= planned.least and elapsed >= planned.budget:
            return
        if planned.keep_garbage:
            gc.collect()
        seconds = time_calls(work, planned.calls, clock, inspect)
        elapsed += seconds
        yield seconds


def episode(work: Work, batches: Iterable[Any], clock: Clock) -> tuple[MeasuredBlocks, Any]:
    """One ordered pass from a fresh state, a block for each call, compiling and all; and what the last call returned.

    Each call is given the next of `batches`, each as `work.call` takes them.
    """
    state = work.fresh()
    work.synchronise(state)
    timed: list[float] = []
    out: Any = None
    for batch in batches:
        began = clock.seconds()
        found = work.call(state, batch)
        work.check(found)
        state, out = found
        work.synchronise((state, out))
        timed.append(clock.seconds() - began)
    return MeasuredBlocks(work.units, tuple(timed)), (state, out)


@contextmanager
def garbage_kept() -> Iterator[None]:
    """No garbage collection by itself inside; what lives now is never looked at again, so collecting is quick."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
