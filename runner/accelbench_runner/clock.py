"""Provide the clock that times blocks; a simulation with known times can replace it."""

import itertools
import time
from time import clock_gettime, perf_counter, sleep
from typing import Protocol

RAW = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Measure monotonic seconds from any origin."""

    def seconds(self) -> float:
        """Return the current time in seconds."""
        ...

    def raw_seconds(self) -> float:
        """Return the current time of a clock that is never adjusted, from another origin."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait for at least this many seconds."""
        ...


class MonotonicClock:
    """Read the system's monotonic clock in the finest resolution that Python offers.

    The functions are bound at import, because a program may replace those of the module `time`.
    """

    @staticmethod
    def seconds() -> float:
        """Return seconds since some moment in the past."""
        return perf_counter()

    @staticmethod
    def raw_seconds() -> float:
        """Return the hardware counter if the system offers it, because time servers may slew the monotonic clock."""
        return clock_gettime(RAW)

    @staticmethod
    def pause(seconds: float) -> None:
        """Sleep for at least this many seconds."""
        sleep(seconds)


class ClockDrift:
    """Measure how much faster the clock runs than the raw clock, from creation on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds, self._raw = _read_both(clock)

    def read(self) -> float:
        """Return the drift as a share of the elapsed time."""
        seconds, raw = (
            now - before for now, before in zip(_read_both(self._clock), (self._seconds, self._raw), strict=True)
        )
        return seconds / raw - 1 if raw > 0 else 0.0


def _read_both(clock: Clock, readings: int = 9) -> tuple[float, float]:
    """Read both clocks at one moment; return the quickest of several attempts.

    On a busy machine the process may be suspended between the two readings for longer than any drift.
    """
    pairs = []
    for _ in range(readings):
        began, raw, ended = clock.seconds(), clock.raw_seconds(), clock.seconds()
        pairs.append((ended - began, (began + ended) / 2, raw))
    _, seconds, raw = min(pairs)
    return seconds, raw


def reading_seconds(clock: Clock, readings: int = 1000) -> float:
    """Return the mean seconds that one reading of the clock takes."""
    began = clock.seconds()
    for _ in range(readings):
        clock.seconds()
    return (clock.seconds() - began) / (readings + 1)


def resolution(clock: Clock, readings: int = 1000) -> float:
    """Return the smallest step between two different readings, in seconds; 0 if all are equal."""
    times = [clock.seconds() for _ in range(readings)]
    steps = [later - earlier for earlier, later in itertools.pairwise(times) if later > earlier]
    return min(steps, default=0.0)
