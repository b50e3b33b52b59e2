"""Detect work that continues after a block's clock has stopped, in runs of calls apart from the timed blocks.

Late work (a thread that a step started, a computation whose result is dropped) uses processor time or keeps the
device's queue busy, so both are watched until they are idle. A run as long as a block shows what its last call leaves
behind; a longer run shows what accumulates over many calls. An episode is checked when it ends.

Threads of a framework's pool spin before they sleep: JAX's for 3 ms after one product, for 30 ms after a quarter of a
second of products. So matrix products, which leave no work behind, run as long as each run took, and their lateness is
subtracted. Late work recurs in every run, while a delay by another process does not: a run that seems late is repeated,
and its smallest lateness is compared with the largest of the products.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from accelbench.launch.facts import Synchronisation, WatchedRun
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.adapter import Execution
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks

LONG_ROUNDS = 2
"""Number of first rounds that make the longer run: a program's late work is the same in every launch."""
LONG_SECONDS = 0.2
"""Minimum seconds of the longer run."""
MAXIMUM_RUNS = 3
"""Maximum number of runs of one length; a run is repeated if it seems late."""
PAUSE_SECONDS = 0.001
BUSY_SHARE = 0.25
"""Maximum share of one processor that other threads of an idle process use."""
QUIET_SECONDS = 0.020
"""Idle time that ends the watch: on a busy machine a thread with work may wait up to this long for a processor."""
PATIENCE_SECONDS = 0.5
"""Maximum seconds to wait for other threads: no pool spins for so long."""
PRODUCT = 256
"""Rows of a product that uses every thread of a framework's pool."""
MAXIMUM_BASELINE_SECONDS = 0.5
"""Maximum seconds of products: more of them do not make a pool spin longer."""


Probe = Callable[[Callable[[], Any]], Any]
"""Runs a probe of accelbench's own and returns its result; None if it failed."""


class LateWork:
    """Measure work that continues after the clock has stopped; create it outside timed phases, as it may compile."""

    def __init__(
        self, adapter: Execution, clock: Clock, other_threads_seconds: Callable[[], float], probe: Probe
    ) -> None:
        """Take the processor time of other threads of the process from `other_threads_seconds`."""
        self._adapter, self._clock, self._probe = adapter, clock, probe
        self._other_threads_seconds = other_threads_seconds
        self._product: Callable[[], None] | None = probe(self._first_product)

    def measure(
        self, work: Work, *, calls: int, long: bool, maximum_runs: int = MAXIMUM_RUNS
    ) -> Synchronisation | None:
        """Make runs of `calls` calls, and longer ones if `long`; return None if the products failed."""
        ready_after_runs: list[bool | None] = []

        def run(number: int) -> tuple[float, float]:
            late = 0.0

            def inspect(result: Any) -> None:
                nonlocal late
                ready_after_runs.append(self._adapter.ready(result))
                late = self._seconds_until_idle()

            seconds = blocks.time_calls(work, number, self._clock, inspect)
            return late, seconds

        if self._product is None:
            return None
        first = self._least_late_run(lambda: run(calls), maximum_runs)
        if first is None:
            return None
        runs = [first]
        if long and (longer := math.ceil(LONG_SECONDS * calls / first.seconds)) > calls:
            if (second := self._least_late_run(lambda: run(longer), maximum_runs)) is None:
                return None
            runs.append(second)
        return Synchronisation(runs=runs, ready=None if None in ready_after_runs else all(ready_after_runs))

    def measure_after(self, result: Any, seconds: float) -> Synchronisation | None:
        """Measure late work of a call that cannot be repeated: it took `seconds` and has just returned `result`."""
        if self._product is None:
            return None
        ready = self._adapter.ready(result)
        late = self._seconds_until_idle()
        run = self._least_late_run(lambda: (late, seconds), maximum_runs=1)
        return None if run is None else Synchronisation(runs=[run], ready=ready)

    def _least_late_run(
        self, run: Callable[[], tuple[float, float]], maximum_runs: int = MAXIMUM_RUNS
    ) -> WatchedRun | None:
        """Return the least late of up to `maximum_runs` runs, without the lateness that spinning threads explain.

        `run` returns lateness and length in seconds. None if the products failed.
        """
        runs, baseline = [], 0.0
        for _ in range(maximum_runs):
            runs.append(run())
            late, seconds = min(runs)
            if baseline + PAUSE_SECONDS < late < PATIENCE_SECONDS:
                after_products = self._probe(partial(self._lateness_of_products, seconds))
                if after_products is None:
                    return None
                baseline = max(baseline, after_products)
            if late <= baseline + PAUSE_SECONDS:
                break
        return WatchedRun(seconds=seconds, late_seconds=max(0.0, late - baseline))

    def _first_product(self) -> Callable[[], None]:
        """Return a call of a product, which is compiled already."""
        product = self._adapter.product(PRODUCT)
        product()
        self._adapter.drain()
        return product

    def _lateness_of_products(self, seconds: float) -> float:
        """Make products for `seconds`, at most `MAXIMUM_BASELINE_SECONDS`; return the seconds until all is idle."""
        assert self._product is not None  # noqa: S101 - the callers have checked
        began = self._clock.seconds()
        self._product()
        while self._clock.seconds() - began < min(seconds, MAXIMUM_BASELINE_SECONDS):
            self._product()
        return self._seconds_until_idle()

    def _seconds_until_idle(self) -> float:
        """Return the seconds from now until the device and the process are idle."""
        began = self._clock.seconds()
        self._adapter.drain()
        return self._clock.seconds() - began + self._seconds_busy()

    def _seconds_busy(self) -> float:
        """Watch other threads until they are idle; return the seconds until the last busy moment."""
        began = last_busy = now = self._clock.seconds()
        used = self._other_threads_seconds()
        while now - last_busy < QUIET_SECONDS and now - began < PATIENCE_SECONDS:
            self._clock.pause(PAUSE_SECONDS)
            before, now = now, self._clock.seconds()
            earlier, used = used, self._other_threads_seconds()
            if used - earlier > BUSY_SHARE * (now - before):
                last_busy = now
        return last_busy - began
