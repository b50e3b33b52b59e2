"""The clock that blocks are timed with; injected, so that a simulation with a known truth can take its place."""

import itertools
import time
from typing import Protocol


class Clock(Protocol):
    """Seconds that only go forward, from any origin."""

    def seconds(self) -> float:
        """Now."""
        ...


class MonotonicClock:
    """The system's monotonic clock, in the finest resolution that Python offers."""

    @staticmethod
    def seconds() -> float:
        """Seconds since some moment in the past."""
        return time.perf_counter()


def resolution(clock: Clock, readings: int = 1000) -> float:
    """The smallest step between two different readings, in seconds."""
    times = [clock.seconds() for _ in range(readings)]
    steps = [later - earlier for earlier, later in itertools.pairwise(times) if later > earlier]
    return min(steps, default=0.0)
