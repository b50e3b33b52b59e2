"""Whether a block's work is done when its clock stops: runs of calls apart from the blocks, each with a close look.

What escapes (a thread that a step started, a computation whose result nobody returns) goes on burning processor time,
or keeps the device's queue busy: both are watched until they are quiet. A run as long as a block shows what its last
call leaves behind; a longer one, what every call leaves behind a little of. An episode is looked at when it ends.
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
"""Of one processor; a process at rest burns a twentieth, for its own watching."""
QUIET_SECONDS = 0.020
"""Without a busy pause: on a crowded machine a thread that has work may wait this long for its turn."""
PATIENCE_SECONDS = 0.5
"""At most waited for: what is later is late anyhow."""
PRODUCT = 256
"""Rows of a product that wakes every thread of a framework's pool: they turn round a while before they sleep."""


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


def look(
    adapter: Settling,
    work: blocks.Work,
    *,
    calls: int,
    seconds_per_call: float,
    long: bool,
    clock: Clock,
    burnt: Callable[[], float],
) -> dict[str, Any]:
    """The fact `synchronisation`; `calls` is those of a block, `burnt` the process's processor time."""
    usual = _usual(adapter, clock, burnt)
    readies: list[bool | None] = []

    def run(number: int) -> dict[str, float]:
        late = 0.0

        def just_stopped(result: Any) -> None:
            nonlocal late
            readies.append(adapter.ready(result))
            late = max(0.0, _late(adapter, clock, burnt) - usual)

        return {"seconds": blocks.time_calls(work, number, clock, just_stopped), "late_seconds": late}

    runs = [run(calls)]
    if long and (longer := math.ceil(LONG_SECONDS / seconds_per_call)) > calls:
        runs.append(run(longer))
    return {"runs": runs, "ready": None if None in readies else all(readies)}


def look_behind(
    adapter: Settling,
    result: Any,
    *,
    seconds: float,
    clock: Clock,
    burnt: Callable[[], float],
) -> dict[str, Any]:
    """The fact `synchronisation` where calls cannot be made again: the last one took `seconds`, until just now."""
    ready = adapter.ready(result)
    late = _late(adapter, clock, burnt)
    return {
        "runs": [{"seconds": seconds, "late_seconds": max(0.0, late - _usual(adapter, clock, burnt))}],
        "ready": ready,
    }


def _usual(adapter: Settling, clock: Clock, burnt: Callable[[], float]) -> float:
    """How late a call is that leaves nothing undone."""
    product = adapter.product(PRODUCT)
    product()
    adapter.drain()
    _until_quiet(clock, burnt)
    product()
    return _late(adapter, clock, burnt)


def _late(adapter: Settling, clock: Clock, burnt: Callable[[], float]) -> float:
    """Seconds from now until device and process rest."""
    began = clock.seconds()
    adapter.drain()
    return clock.seconds() - began + _until_quiet(clock, burnt)


def _until_quiet(clock: Clock, burnt: Callable[[], float]) -> float:
    """Seconds until the process was busy last."""
    began = busy = now = clock.seconds()
    spent = burnt()
    while now - busy < QUIET_SECONDS and now - began < PATIENCE_SECONDS:
        clock.pause(PAUSE_SECONDS)
        before, now = now, clock.seconds()
        earlier, spent = spent, burnt()
        if spent - earlier > BUSY_SHARE * (now - before):
            busy = now
    return busy - began
