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
    """Ten times."""
    perf_counter, clock_gettime, monotonic = time.perf_counter, time.clock_gettime, time.monotonic
    time.perf_counter = lambda: perf_counter() / 10
    if parameters.also_raw:
        time.clock_gettime = lambda clock: clock_gettime(clock) / 10
        time.monotonic = lambda: monotonic() / 10
