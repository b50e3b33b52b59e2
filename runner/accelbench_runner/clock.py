"""Provide the clock that times blocks; a simulation with known times can replace it."""

import itertools
import time
from time import clock_gettime, perf_counter, sleep
from typing import Protocol

SPIN_SECONDS = 0.001
"""Seconds before its end at which a wait stops sleeping and starts to poll the clock. Linux wakes a sleeping process
late, but by less than this."""
RAW = getattr(time, "CLOCK_MONOTONIC_RAW", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """Measure time in seconds that never go back, from an unspecified start."""

    def seconds(self) -> float:
        """Return the seconds since an unspecified time, by a clock that never goes back."""
        ...

    def raw_seconds(self) -> float:
        """Return the seconds since an unspecified time, by a clock that time servers never adjust."""
        ...

    def pause(self, seconds: float) -> None:
        """Wait for at least this many seconds."""
        ...

    def wait_until(self, moment: float) -> None:
        """Wait until `seconds` returns at least `moment`; return at once if it already does."""
        ...


class MonotonicClock:
    """Read the system's monotonic clock in the finest resolution that Python offers.

    The functions are bound at import, because a program may replace those of the module `time`.
    """

    @staticmethod
    def seconds() -> float:
        """Return the seconds since an unspecified time, by a clock that never goes back."""
        return perf_counter()

    @staticmethod
    def raw_seconds() -> float:
        """Return the seconds since an unspecified time, by a clock that time servers never adjust."""
        return clock_gettime(RAW)

    @staticmethod
    def pause(seconds: float) -> None:
        """Sleep for at least this many seconds."""
        sleep(seconds)

    @staticmethod
    def wait_until(moment: float) -> None:
        """Sleep until shortly before the moment, then poll the clock, because a sleep ends late."""
        seconds_to_sleep = moment - perf_counter() - SPIN_SECONDS
        if seconds_to_sleep > 0:
            sleep(seconds_to_sleep)
        while perf_counter() < moment:
            pass


class ClockDrift:
    """Measure how much faster the clock has run than the raw clock since this object was created."""

    def __init__(self, clock: Clock) -> None:
        """Read both clocks for the first time."""
        self._clock = clock
        self._start_seconds, self._start_raw_seconds = _read_both(clock)

    def read(self) -> float:
        """Return how much faster the clock runs than the raw clock: 0.01 is 1 %.

        Return 0 if the raw clock has not advanced.
        """
        seconds, raw_seconds = _read_both(self._clock)
        elapsed_seconds = seconds - self._start_seconds
        elapsed_raw_seconds = raw_seconds - self._start_raw_seconds
        if elapsed_raw_seconds <= 0:
            return 0.0
        return elapsed_seconds / elapsed_raw_seconds - 1


def _read_both(clock: Clock, attempts: int = 9) -> tuple[float, float]:
    """Return the readings of the clock and of the raw clock, in seconds, taken as nearly as possible at one moment."""
    readings = []
    for _ in range(attempts):
        began = clock.seconds()
        raw_seconds = clock.raw_seconds()
        ended = clock.seconds()
        readings.append((ended - began, (began + ended) / 2, raw_seconds))
    # In a slow attempt, the system suspended this process between readings. So take the shortest attempt.
    _duration, seconds, raw_seconds = min(readings)
    return seconds, raw_seconds


def reading_seconds(clock: Clock, readings: int = 50, attempts: int = 20) -> float:
    """Return the mean seconds that one reading of the clock takes, in the quickest of several attempts."""
    means = []
    for _ in range(attempts):
        began = clock.seconds()
        for _ in range(readings):
            clock.seconds()
        ended = clock.seconds()
        means.append((ended - began) / (readings + 1))  # the reading of `ended` takes time too
    # The minimum leaves out attempts that took longer because the system suspended this process.
    return min(means)


def resolution(clock: Clock, readings: int = 1000) -> float:
    """Return the smallest step of the clock in a series of readings, in seconds; 0 if all readings are equal."""
    times = [clock.seconds() for _ in range(readings)]
    differences = [later - earlier for earlier, later in itertools.pairwise(times)]
    return min((difference for difference in differences if difference > 0), default=0.0)
