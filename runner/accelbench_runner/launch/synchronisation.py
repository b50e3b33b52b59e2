"""Detect late work: work that continues after a block's clock has stopped.

Late work (a thread that a step started, a computation whose result is dropped) uses CPU time or keeps the device's
queue busy. So after separate runs of calls, which are not timed as blocks, both are watched until they are idle. A run
as long as a block shows the work that its last call leaves unfinished; a longer run shows work that accumulates over
many calls. An episode is checked when it ends.

Threads of a framework's pool spin before they sleep: JAX's for 3 ms after one product, for 30 ms after a quarter of a
second of products. So matrix products, which leave no work unfinished, are run for as long as each run took, and the
time until the threads are idle after them is subtracted. Late work recurs in every run, while a delay by another
process does not. So a run that seems late is repeated, and the least late run is compared with the latest products.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from accelbench.launch.facts import Synchronisation, WatchedRun
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Execution
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks

LONG_ROUNDS = 2
"""Number of rounds, from the first on, that make the longer run: late work is the same in every launch."""
LONG_SECONDS = 0.2
"""Minimum seconds of the longer run."""
MAXIMUM_RUNS = 3
"""Maximum number of runs of one length; a run is repeated if it seems late."""
PAUSE_SECONDS = 0.001
"""Seconds between two readings of the other threads' CPU time, and so the resolution of late seconds."""
BUSY_SHARE = 0.25
"""Maximum share of one CPU that other threads may use while the process counts as idle."""
QUIET_SECONDS = 0.020
"""Seconds without work that end the watch: on a busy machine, a thread may wait that long for a CPU."""
PATIENCE_SECONDS = 0.5
"""Maximum seconds to watch other threads: no pool spins for so long."""
PRODUCT = 256
"""Rows of a product that is large enough to use every thread of a framework's pool."""
MAXIMUM_BASELINE_SECONDS = 0.5
"""Maximum seconds of products: more of them do not make a pool spin longer."""


RunProbe = Callable[[Callable[[], Any]], Any]
"""Calls a function that runs none of the variant's code, and returns the result; None if the function failed."""


class _Run(NamedTuple):
    """Hold how long work continued after a run of calls, and how long the run took. Runs sort by `late_seconds`."""

    late_seconds: float
    seconds: float


class LateWork:
    """Measure work that continues after the clock has stopped.

    Creating an instance may compile a product, so create it outside of timed phases.
    """

    def __init__(
        self, adapter: Execution, clock: Clock, other_threads_seconds: Callable[[], float], probe: RunProbe
    ) -> None:
        """Compile the matrix product that is compared with the work to measure.

        `probe` calls a function and returns its result, or None if the function failed. `other_threads_seconds` returns
        the CPU seconds of the process's other threads.
        """
        self._adapter, self._clock, self._probe = adapter, clock, probe
        self._other_threads_seconds = other_threads_seconds
        self._product: Callable[[], None] | None = probe(self._first_product)
        """Computes the matrix product; None if it failed."""

    def measure(
        self, work: Work, *, calls: int, with_long_run: bool, maximum_runs: int = MAXIMUM_RUNS
    ) -> Synchronisation | None:
        """Measure how long work continues after a run of `calls` calls has returned.

        Returns None if one of the matrix products failed, with which late work is compared.

        If `with_long_run`, a run of at least `LONG_SECONDS` is measured too. A run that seems late is repeated, up to
        `maximum_runs` times in all.
        """
        ready_after_runs: list[bool | None] = []

        def run(calls_in_run: int) -> _Run:
            """Make a run of calls, and measure for how long work continues after it."""
            late_seconds = 0.0

            def inspect(result: Any) -> None:
                """Check whether the run's result is ready when its clock has stopped; measure later work."""
                nonlocal late_seconds
                ready_after_runs.append(self._adapter.ready(result))
                late_seconds = self._seconds_until_idle()

            seconds = blocks.time_calls(work, calls_in_run, self._clock, inspect)
            return _Run(late_seconds, seconds)

        if self._product is None:
            return None
        short_run = self._least_late_run(lambda: run(calls), maximum_runs)
        if short_run is None:
            return None
        runs = [short_run]
        calls_in_long_run = math.ceil(LONG_SECONDS * calls / short_run.seconds) if with_long_run else 0
        if calls_in_long_run > calls:
            long_run = self._least_late_run(lambda: run(calls_in_long_run), maximum_runs)
            if long_run is None:
                return None
            runs.append(long_run)
        is_unknown = None in ready_after_runs  # the framework cannot tell
        return Synchronisation(runs=runs, ready=None if is_unknown else all(ready_after_runs))

    def measure_after(self, result: Any, seconds: float) -> Synchronisation | None:
        """Measure how long work continues after a call that took `seconds` and has just returned `result`.

        Returns None if a matrix product failed.
        """
        if self._product is None:
            return None
        ready = self._adapter.ready(result)
        late_seconds = self._seconds_until_idle()
        # The call cannot be repeated, so its run, which has ended, is the only one.
        ended_run = _Run(late_seconds, seconds)
        run = self._least_late_run(lambda: ended_run, maximum_runs=1)
        return None if run is None else Synchronisation(runs=[run], ready=ready)

    def _least_late_run(self, run: Callable[[], _Run], maximum_runs: int) -> WatchedRun | None:
        """Repeat a run while work seems to continue after it; return the run with the fewest late seconds.

        Its late seconds are reduced by those after matrix products, because threads of a pool spin for a while after
        any work. Returns None if a matrix product failed.
        """
        runs, baseline_seconds = [], 0.0  # the baseline: how long threads are busy after matrix products
        for _ in range(maximum_runs):
            runs.append(run())
            late_seconds, seconds = min(runs)  # `_Run` is sorted by its late seconds first
            # A run that is later than the products so far is compared with products as long as the run. One that is
            # late by `PATIENCE_SECONDS` needs no comparison, because no pool spins for so long.
            if baseline_seconds + PAUSE_SECONDS < late_seconds < PATIENCE_SECONDS:
                product_late_seconds = self._probe(partial(self._lateness_of_products, seconds))
                if product_late_seconds is None:
                    return None
                baseline_seconds = max(baseline_seconds, product_late_seconds)
            if late_seconds <= baseline_seconds + PAUSE_SECONDS:
                break
        return WatchedRun(seconds=seconds, late_seconds=max(0.0, late_seconds - baseline_seconds))

    def _first_product(self) -> Callable[[], None]:
        """Compile a matrix product, compute the product once, and return the function that computes it."""
        product = self._adapter.product(PRODUCT)
        product()
        self._adapter.drain()
        return product

    def _lateness_of_products(self, seconds: float) -> float:
        """Multiply matrices for `seconds`, at most `MAXIMUM_BASELINE_SECONDS`; then return the seconds until idle."""
        assert self._product is not None  # noqa: S101 - the callers have checked
        began = self._clock.seconds()
        self._product()
        while self._clock.seconds() - began < min(seconds, MAXIMUM_BASELINE_SECONDS):
            self._product()
        return self._seconds_until_idle()

    def _seconds_until_idle(self) -> float:
        """Wait for the device and the process's other threads; return the seconds until both are idle."""
        began = self._clock.seconds()
        self._adapter.drain()  # waits for the device's queue
        return self._clock.seconds() - began + self._seconds_busy()

    def _seconds_busy(self) -> float:
        """Wait until this process's other threads are idle, and return the seconds until they were last busy.

        Stop waiting after `PATIENCE_SECONDS`.
        """
        began = last_busy = now = self._clock.seconds()
        cpu_seconds = self._other_threads_seconds()
        while now - last_busy < QUIET_SECONDS and now - began < PATIENCE_SECONDS:
            self._clock.pause(PAUSE_SECONDS)
            previous, now = now, self._clock.seconds()
            previous_cpu_seconds, cpu_seconds = cpu_seconds, self._other_threads_seconds()
            used_seconds = cpu_seconds - previous_cpu_seconds
            if used_seconds > BUSY_SHARE * (now - previous):
                last_busy = now
        return last_busy - began
