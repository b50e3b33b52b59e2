"""Time that passes only where nothing is left to do: one clock, and processes with an event loop each.

A process is a loop: one that stands still is not turned until it goes on, and its timers are late then, as after a
SIGSTOP. Nothing sleeps and nothing is drawn here, so the same beginning gives the same end. Libraries that let a loop's
time jump (looptime, aiotools) were read and left: they have one loop, which cannot stand still beside another.
"""

# ruff: noqa: ANN001, ANN002, ANN201, ARG002 - signatures are the event loop's own

import asyncio
import heapq
import itertools
import selectors
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from operator_world.builders import NOW

NEVER = float("inf")
MOMENT_SECONDS = 1e-6
"""A turn takes so long, and no wait is shorter: a loop fires its timers a little early, and would turn for ever."""
MOST_TURNS = 100_000
"""Within a second."""


class SimulatedTime:
    """Seconds since `NOW`, the processes that live by them, and what else is to happen at a moment."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.loops: list[ProcessLoop] = []
        self._later: list[tuple[float, int, Callable[[], object]]] = []
        self._numbers = itertools.count()
        self._turns = 0
        self._second = 0

    def now(self) -> datetime:
        """The time of day."""
        return NOW + timedelta(seconds=self.seconds)

    def later(self, seconds: float, happen: Callable[[], object]) -> None:
        """Something happens in the world, in no process of ours."""
        heapq.heappush(self._later, (self.seconds + seconds, next(self._numbers), happen))

    def run_for(self, seconds: float) -> None:
        """Everything that is to happen until then happens."""
        end = self.seconds + seconds
        while True:
            loop = min(self.loops, key=lambda each: each.turns_at, default=None)
            turns_at = loop.turns_at if loop else NEVER
            happens_at = self._later[0][0] if self._later else NEVER
            if min(turns_at, happens_at) > end:
                break
            self.seconds = max(self.seconds, min(turns_at, happens_at))
            if happens_at <= turns_at:
                heapq.heappop(self._later)[2]()
            else:
                loop.run_forever()
        self.seconds = end

    def turned(self) -> None:
        """A loop turns, which takes a moment; that it does so for ever is a defect, of whatever is in it."""
        self.seconds += MOMENT_SECONDS
        second = int(self.seconds)
        self._turns = self._turns + 1 if second == self._second else 0
        self._second = second
        if self._turns > MOST_TURNS:
            raise RuntimeError(f"something turns and turns at {self.seconds:.3f} s and waits for nothing")


class ProcessLoop(asyncio.SelectorEventLoop):
    """The event loop of one process: `run_forever` returns once nothing is ready."""

    def __init__(self, time: SimulatedTime) -> None:
        super().__init__(_Idle(self))
        self._simulated = time
        self._wakes_at = time.seconds
        self._stands_still_until = 0.0
        time.loops.append(self)

    @property
    def turns_at(self) -> float:
        """When it has something to do and can do it."""
        return max(self._wakes_at, self._stands_still_until)

    def stand_still(self, seconds: float) -> None:
        """As a process that is stopped, or whose machine does other things."""
        self._stands_still_until = self._simulated.seconds + seconds

    def turned(self) -> None:
        """Something was ready."""
        self._simulated.turned()

    def idle(self, seconds: float | None) -> None:
        """Nothing is ready, for so long unless it is woken."""
        self._wakes_at = NEVER if seconds is None else self._simulated.seconds + max(seconds, MOMENT_SECONDS)
        self.stop()

    def time(self) -> float:
        return self._simulated.seconds

    def call_soon_threadsafe(self, callback, *args, context=None):
        """From outside: by the world, or by another process."""
        self._wakes_at = min(self._wakes_at, self._simulated.seconds)
        return self.call_soon(callback, *args, context=context)

    def run_in_executor(self, executor, func, *args):
        """At once: threads would bring real time in."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it gets it
            future.set_exception(error)
        return future

    def close(self) -> None:
        if self in self._simulated.loops:
            self._simulated.loops.remove(self)
        super().close()


class _Idle(selectors.SelectSelector):
    """No file is ever ready; where a loop would wait, it says for how long."""

    def __init__(self, loop: ProcessLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout > 0:
            self._loop.idle(timeout)
        else:
            self._loop.turned()
        return []
