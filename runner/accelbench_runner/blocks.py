"""Blocks: timed runs of calls between two synchronisations, how long they are, and how many there are.

Pure around a clock and the calls: nothing here knows a framework. Everything that decides how much is measured is fixed
before the first measured block, never by what the measured blocks say.
"""

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from accelbench_runner.clock import Clock

BLOCK_SECONDS = 0.010
"""A block is at least this long: ten thousand times what a monotonic clock resolves, and longer than a scheduling slice
that a neighbour may take."""
OVERHEAD_SHARE = 0.001
"""Reading the clock and synchronising may be this share of a block: a tenth of the least margin anyone asks for."""
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


@dataclass(frozen=True)
class Work:
    """What is timed. `call` takes a state and the batches and returns the next state and everything it computed."""

    fresh: Callable[[], Any]
    call: Callable[[Any, Any], tuple[Any, Any]]
    batches: Any
    synchronise: Callable[[Any], None]
    """Returns when everything in its argument has been computed."""
    units: int
    """Units of work in one call."""


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    calls: int
    """Calls in a block."""
    blocks: int


@dataclass(frozen=True)
class Timed:
    """One block: seconds for `units` units."""

    units: int
    seconds: float


def _ignore(_result: Any) -> None:
    """Nobody wants to look at the result."""


def time_calls(work: Work, calls: int, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> float:
    """Seconds that `calls` calls take, each on the state that the one before returned; begins with a fresh state.

    `inspect` is shown what the last call returned, once the clock has stopped.
    """
    state = work.fresh()
    work.synchronise(state)
    out: Any = None
    call, batches = work.call, work.batches
    began = clock.seconds()
    for _ in range(calls):
        state, out = call(state, batches)
    work.synchronise((state, out))
    seconds = clock.seconds() - began
    inspect((state, out))
    return seconds


def warm_up(work: Work, clock: Clock) -> float:
    """Calls in growing runs until time and count are reached; returns seconds per call in the fastest run.

    The fastest, so that blocks planned by it hardly turn out shorter than planned once everything has settled.
    """
    calls, elapsed, done, fastest = 1, 0.0, 0, math.inf
    while elapsed < WARM_UP_SECONDS or done < WARM_UP_CALLS:
        seconds = time_calls(work, calls, clock)
        elapsed += seconds
        done += calls
        fastest = min(fastest, seconds / calls)
        if seconds < BLOCK_SECONDS:
            calls *= 2
    return fastest


def overhead_seconds(work: Work, clock: Clock, readings: int = 20) -> float:
    """What timing a block costs: two readings of the clock and a synchronisation with nothing left to wait for."""
    state = work.fresh()
    work.synchronise(state)
    began = clock.seconds()
    for _ in range(readings):
        clock.seconds()
        work.synchronise(state)
        clock.seconds()
    return (clock.seconds() - began) / readings


def plan(seconds_per_call: float, overhead: float) -> Plan:
    """Blocks long enough for clock and overhead, as many as the budget pays for."""
    length = max(BLOCK_SECONDS, overhead / OVERHEAD_SHARE)
    calls = max(1, math.ceil(length / seconds_per_call))
    block = calls * seconds_per_call
    blocks = min(MAXIMUM_BLOCKS, max(MINIMUM_BLOCKS, round(BUDGET_SECONDS / block)))
    return Plan(calls=calls, blocks=blocks)


def measure(work: Work, planned: Plan, clock: Clock, inspect: Callable[[Any], None] = _ignore) -> Iterator[Timed]:
    """The planned blocks within the long budget; garbage is collected between them and not inside."""
    elapsed = 0.0
    for number in range(planned.blocks):
        if number >= MINIMUM_LONG_BLOCKS and elapsed >= LONG_BUDGET_SECONDS:
            return
        gc.collect()
        seconds = time_calls(work, planned.calls, clock, inspect)
        elapsed += seconds
        yield Timed(units=planned.calls * work.units, seconds=seconds)


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
