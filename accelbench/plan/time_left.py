"""Estimate how long the rest of a suite takes, from time limits and from what was measured already. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass

from accelbench import figures


@dataclass(frozen=True)
class MeasuredTime:
    """Hold how long a case took, and its time limit."""

    seconds: float
    limit_seconds: int


@dataclass(frozen=True)
class TimeLeft:
    """Estimate the time that the cases without a result take."""

    limit_seconds: int
    """Sum of their time limits."""
    expected_seconds: float | None
    """None if no case was measured yet."""

    def __str__(self) -> str:
        """Return the time in words: `about 4 min 10 s left, at most 9 min 00 s by the time limits`."""
        limit = f"at most {figures.duration(self.limit_seconds)}"
        if self.expected_seconds is None:
            return f"{limit} left by the time limits"
        return f"about {figures.duration(self.expected_seconds)} left, {limit} by the time limits"


def time_left(limits_of_open_cases: Iterable[int], measured: Iterable[MeasuredTime]) -> TimeLeft:
    """Estimate the time that open cases take: the same share of their limits that the measured cases took.

    Args:
        limits_of_open_cases: The time limit of each case that has no result, in seconds.
        measured: Times of the cases that have one.
    """
    limit = sum(limits_of_open_cases)
    times = tuple(measured)
    measured_limit = sum(time.limit_seconds for time in times)
    if not measured_limit:
        return TimeLeft(limit, None)
    measured_share = sum(time.seconds for time in times) / measured_limit
    share = min(1.0, measured_share)  # the estimate never exceeds the limit
    return TimeLeft(limit, share * limit)
