"""Time passes slower for it: it replaces the clock that Python programs read."""

import time

from pydantic import Field

from accelbench.workload import WorkloadParameters
from cheats.honest import Relaxation


class SlowsTheClock(Relaxation):
    """x <- tanh(x @ w), in no time."""

    class Parameters(WorkloadParameters):
        """Which."""

        also_raw: bool = Field(default=False, description="The clock that the first is held against, too.")

    def jax(self, parameters, arrays, tools):
        slow(parameters)
        return super().jax(parameters, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        slow(parameters)
        return super().pytorch(parameters, arrays, tools)


def slow(parameters):
    """Ten times, from now on."""
    time.perf_counter = slower(time.perf_counter)
    if parameters.also_raw:
        time.clock_gettime, time.monotonic = slower(time.clock_gettime), slower(time.monotonic)


def slower(clock):
    """For each of the clocks that it may be asked about, what has passed of it."""
    began = {}

    def slowed(*which):
        now = clock(*which)
        first = began.setdefault(which, now)
        return first + (now - first) / 10

    return slowed
