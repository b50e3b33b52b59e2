"""The clock that blocks are timed with; injected, so that a simulation with a known truth can take its place."""

import itertools
import time
from time import clock_gettime, perf_counter, sleep
from typing import Protocol

RAW = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Seconds that only go forward, from any origin."""

    def seconds(self) -> float:
        """Now."""
        ...

    def raw_seconds(self) -> float:
        """Now, by a clock that nobody adjusts; from another origin."""
        ...

    def pause(self, seconds: float) -> None:
        """Lets so many seconds pass, or a few more."""
        ...


class MonotonicClock:
    """The system's monotonic clock, in the finest resolution that Python offers.

    Its functions are those of the moment of import: a program may put others in their place.
    """

    @staticmethod
    def seconds() -> float:
        """Seconds since some moment in the past."""
        return perf_counter()

    @staticmethod
    def raw_seconds() -> float:
        """The counter itself, where the system shows it: time servers may stretch the monotonic clock."""
        return clock_gettime(RAW)

    @staticmethod
    def pause(seconds: float) -> None:
        """Sleeps."""
        sleep(seconds)


class ClockDrift:
    """How far the clock runs ahead of the raw one from here on."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._seconds, self._raw = _at_once(clock)

    def read(self) -> float:
        """As a share of the time since."""
        seconds, raw = (
            now - before for now, before in zip(_at_once(self._clock), (self._seconds, self._raw), strict=True)
        )
        return seconds / raw - 1 if raw > 0 else 0.0


def _at_once(clock: Clock, readings: int = 9) -> tuple[float, float]:
    """Both clocks as of one moment: of several readings the one in which least time passed from first to last.

    Where many want the processor, it may be taken away between two readings for longer than any drift.
    """
    pairs = []
    for _ in range(readings):
        began, raw, ended = clock.seconds(), clock.raw_seconds(), clock.seconds()
        pairs.append((ended - began, (began + ended) / 2, raw))
    _, seconds, raw = min(pairs)
    return seconds, raw


def reading_seconds(clock: Clock, readings: int = 1000) -> float:
    """What reading the clock once costs."""
    began = clock.seconds()
    for _ in range(readings):
        clock.seconds()
    return (clock.seconds() - began) / (readings + 1)


def resolution(clock: Clock, readings: int = 1000) -> float:
    """The smallest step between two different readings, in seconds."""
    times = [clock.seconds() for _ in range(readings)]
    steps = [later - earlier for earlier, later in itertools.pairwise(times) if later > earlier]
    return min(steps, default=0.0)
