"""Whether a block's work is done when its clock stops: runs of calls apart from the blocks, each with a close look.

What escapes (a thread that a step started, a computation whose result nobody returns) goes on burning processor time,
or keeps the device's queue busy: both are watched until they are quiet. A run as long as a block shows what its last
call leaves behind; a longer one, what every call leaves behind a little of. An episode is looked at when it ends.

Threads of a framework's pool turn round before they sleep, JAX's the longer the more they had to do: 3 ms after one
product, 30 after a quarter of a second of them. So products, which leave nothing undone, are made for as long as each
run took, and what they leave behind is taken off. What escapes does so each time, and what a neighbour or a hypervisor
delays does not: a run that seems late is made again, and its least lateness held against the most of the products.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from accelbench.launch.facts import Synchronisation, WatchedRun
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Execution
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks

LONG_ROUNDS = 2
"""The longer run is made in the first rounds: what escapes is the program's doing, and every launch's alike."""
LONG_SECONDS = 0.2
MOST_RUNS = 3
"""Of one length; the second and the third where those before seem late."""
PAUSE_SECONDS = 0.001
BUSY_SHARE = 0.25
"""Of one processor, by other threads than the one that watches."""
QUIET_SECONDS = 0.020
"""Without a busy pause: on a crowded machine a thread that has work may wait this long for its turn."""
PATIENCE_SECONDS = 0.5
"""At most waited for: no pool turns round for so long."""
PRODUCT = 256
"""Rows of a product that wakes every thread of a framework's pool."""
LONGEST_USUAL_SECONDS = 0.5
"""Pools turn round no longer after more."""


Probe = Callable[[Callable[[], Any]], Any]
"""Makes a look of accelbench's own, and returns what it found; None where it gave no answer."""


class Aftermath:
    """Watches what goes on when a clock has stopped; made where nothing is timed, for what it needs may compile."""

    def __init__(self, adapter: Execution, clock: Clock, burnt: Callable[[], float], probe: Probe) -> None:
        """`burnt` tells the processor time of other threads than the one that asks."""
        self._adapter, self._clock, self._burnt, self._probe = adapter, clock, burnt, probe
        self._product: Callable[[], None] | None = probe(self._first_product)

    def measure_lateness(self, work: Work, *, calls: int, long: bool, most: int = MOST_RUNS) -> Synchronisation | None:
        """What was found; `calls` is those of a block. None where our own products gave no answer."""
        readies: list[bool | None] = []

        def run(number: int) -> tuple[float, float]:
            late = 0.0

            def just_stopped(result: Any) -> None:
                nonlocal late
                readies.append(self._adapter.ready(result))
                late = self._late()

            seconds = blocks.time_calls(work, number, self._clock, just_stopped)
            return late, seconds

        if self._product is None:
            return None
        first = self._least_late(lambda: run(calls), most)
        if first is None:
            return None
        runs = [first]
        if long and (longer := math.ceil(LONG_SECONDS * calls / first.seconds)) > calls:
            if (second := self._least_late(lambda: run(longer), most)) is None:
                return None
            runs.append(second)
        return Synchronisation(runs=runs, ready=None if None in readies else all(readies))

    def judge_result(self, result: Any, seconds: float) -> Synchronisation | None:
        """The same where calls cannot be made again: the last one took `seconds`, until just now."""
        if self._product is None:
            return None
        ready = self._adapter.ready(result)
        late = self._late()
        run = self._least_late(lambda: (late, seconds), most=1)
        return None if run is None else Synchronisation(runs=[run], ready=ready)

    def _least_late(self, run: Callable[[], tuple[float, float]], most: int = MOST_RUNS) -> WatchedRun | None:
        """Of `most` runs, which say how late they were and how long; less what pools that turn round explain."""
        runs, usual = [], 0.0
        for _ in range(most):
            runs.append(run())
            late, seconds = min(runs)
            if usual + PAUSE_SECONDS < late < PATIENCE_SECONDS:
                after_products = self._probe(partial(self._usual, seconds))
                if after_products is None:
                    return None
                usual = max(usual, after_products)
            if late <= usual + PAUSE_SECONDS:
                break
        return WatchedRun(seconds=seconds, late_seconds=max(0.0, late - usual))

    def _first_product(self) -> Callable[[], None]:
        product = self._adapter.product(PRODUCT)
        product()
        self._adapter.drain()
        return product

    def _usual(self, seconds: float) -> float:
        """How late calls are that leave nothing undone, after as long."""
        assert self._product is not None  # noqa: S101 - asked for before
        began = self._clock.seconds()
        self._product()
        while self._clock.seconds() - began < min(seconds, LONGEST_USUAL_SECONDS):
            self._product()
        return self._late()

    def _late(self) -> float:
        """Seconds from now until device and process rest."""
        began = self._clock.seconds()
        self._adapter.drain()
        return self._clock.seconds() - began + self._until_quiet()

    def _until_quiet(self) -> float:
        """Seconds until the process was busy last."""
        began = busy = now = self._clock.seconds()
        spent = self._burnt()
        while now - busy < QUIET_SECONDS and now - began < PATIENCE_SECONDS:
            self._clock.pause(PAUSE_SECONDS)
            before, now = now, self._clock.seconds()
            earlier, spent = spent, self._burnt()
            if spent - earlier > BUSY_SHARE * (now - before):
                busy = now
        return busy - began
