"""Whether a block's work is done when its clock stops: runs of calls apart from the blocks, each with a close look.

What escapes (a thread that a step started, a computation whose result nobody returns) goes on burning processor time,
or keeps the device's queue busy: both are watched until they are quiet. A run as long as a block shows what its last
call leaves behind; a longer one, what every call leaves behind a little of. An episode is looked at when it ends.

Threads of a framework's pool turn round before they sleep, JAX's the longer the more they had to do: 3 ms after one
product, 30 after a quarter of a second of them. So products, which leave nothing undone, are made for as long as each
run took, and what they leave behind is taken off.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

from accelbench_runner import blocks
from accelbench_runner.clock import Clock

LONG_ROUNDS = 2
"""The longer run is made in the first rounds: what escapes is the program's doing, and every launch's alike."""
LONG_SECONDS = 0.2
PAUSE_SECONDS = 0.001
BUSY_SHARE = 0.25
"""Of one processor, by other threads than the one that watches."""
QUIET_SECONDS = 0.020
"""Without a busy pause: on a crowded machine a thread that has work may wait this long for its turn."""
PATIENCE_SECONDS = 0.5
"""At most waited for: what is later is late anyhow."""
PRODUCT = 256
"""Rows of a product that wakes every thread of a framework's pool."""
LONGEST_USUAL_SECONDS = 0.5
"""Pools turn round no longer after more."""


class Settling(Protocol):
    """What is asked of an adapter."""

    def drain(self) -> None:
        """Returns when everything that the device was ever given is done."""
        ...

    def ready(self, value: Any) -> bool | None:
        """Whether all of `value` is there."""
        ...

    def product(self, size: int) -> Callable[[], None]:
        """A call that leaves nothing undone."""
        ...


class Aftermath:
    """Watches what goes on when a clock has stopped; made where nothing is timed, for what it needs may compile."""

    def __init__(self, adapter: Settling, clock: Clock, burnt: Callable[[], float]) -> None:
        """`burnt` tells the processor time of other threads than the one that asks."""
        self._adapter, self._clock, self._burnt = adapter, clock, burnt
        self._product = adapter.product(PRODUCT)
        self._product()
        adapter.drain()

    def look(self, work: blocks.Work, *, calls: int, seconds_per_call: float, long: bool) -> dict[str, Any]:
        """The fact `synchronisation`; `calls` is those of a block."""
        readies: list[bool | None] = []

        def run(number: int) -> dict[str, float]:
            late = 0.0

            def just_stopped(result: Any) -> None:
                nonlocal late
                readies.append(self._adapter.ready(result))
                late = self._late()

            seconds = blocks.time_calls(work, number, self._clock, just_stopped)
            return {"seconds": seconds, "late_seconds": self._beyond_the_usual(late, seconds)}

        runs = [run(calls)]
        if long and (longer := math.ceil(LONG_SECONDS / seconds_per_call)) > calls:
            runs.append(run(longer))
        return {"runs": runs, "ready": None if None in readies else all(readies)}

    def look_behind(self, result: Any, seconds: float) -> dict[str, Any]:
        """The fact `synchronisation` where calls cannot be made again: the last one took `seconds`, until just now."""
        ready = self._adapter.ready(result)
        late_seconds = self._beyond_the_usual(self._late(), seconds)
        return {"runs": [{"seconds": seconds, "late_seconds": late_seconds}], "ready": ready}

    def _beyond_the_usual(self, late: float, seconds: float) -> float:
        """What of it is not pools that turn round: how late calls are that leave nothing undone, after as long."""
        if late <= PAUSE_SECONDS:
            return late
        began = self._clock.seconds()
        self._product()
        while self._clock.seconds() - began < min(seconds, LONGEST_USUAL_SECONDS):
            self._product()
        return max(0.0, late - self._late())

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
