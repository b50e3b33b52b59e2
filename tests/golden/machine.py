# ruff: noqa: S311 - noise, no secrets
"""A machine whose truth is known: its clocks, and what its kernel would tell of its processors."""

import math
import os
import random
import signal

from accelbench_runner.devices.cpu import Contention, Usage
from accelbench_runner.devices.processes import ProcessUsage, Reading
from golden.truth import Truth

SPINNING_SECONDS = 0.002
"""A thread pool turns round so long after the last work, before it sleeps."""
AT_REST = 0.02
"""Of one processor, that a process burns while it sleeps."""
NEIGHBOUR = ProcessUsage("neighbour", 4711, 0.0)


class SimulatedMachine:
    """Time passes only by what is done on it; as `Clock` and as `Processors` of a launch."""

    def __init__(self, truth: Truth, seed: str) -> None:
        self._truth = truth
        self._rng = random.Random(seed)
        self._processors = len(os.sched_getaffinity(0))
        self.now = 0.0
        self._own = self._elsewhere = self._held_back = 0.0
        self._busy_until = self._spinning_until = self._escaped_until = 0.0
        self._calls = 0

    def seconds(self) -> float:
        self.work(self._truth.read_seconds)
        tick = self._truth.tick_seconds
        shown = 100.0 + self.now * (1 + self._truth.clock_runs_ahead)
        return math.floor(shown / tick) * tick

    def raw_seconds(self) -> float:
        return 5.0 + self.now

    def pause(self, seconds: float) -> None:
        busy = max(self._spinning_until, self._escaped_until, self._busy_until) - self.now
        elsewhere = min(seconds, max(0.0, busy))
        self._elsewhere += elsewhere
        self._own += elsewhere + AT_REST * seconds
        self.now += seconds

    def wait_until(self, moment: float) -> None:
        left = moment - self.seconds()
        if left > 0:
            self.pause((left + self._truth.wakes_late) / (1 + self._truth.clock_runs_ahead))

    def other_threads_seconds(self) -> float:
        return self._elsewhere

    def usage(self) -> Usage:
        others = self._truth.others * self._processors * self.now
        return Usage(all_seconds=self._own + others, process_seconds=self._own)

    def other_processes(self) -> Reading:
        seconds = self._truth.others * self._processors * self.now
        return {(NEIGHBOUR.pid, 0.0): NEIGHBOUR._replace(seconds=seconds)} if seconds else {}

    def asked(self, probe: str) -> None:
        """By accelbench, on its own account."""
        if probe != self._truth.probe:
            return
        match self._truth.probe_does:
            case "raises":
                raise ValueError("no answer")
            case "hangs":
                signal.pause()
            case "crashes":
                os.kill(os.getpid(), signal.SIGSEGV)

    def contention(self) -> Contention:
        self.asked("watch")
        return Contention(
            periods=round(self._held_back / 0.01),
            seconds=self._held_back,
            steal_seconds=self._truth.stolen * self._processors * self.now,
            pressure_seconds=0.0,
        )

    def work(self, seconds: float) -> None:
        """The process itself is at work."""
        if self.now >= self._truth.slow_after_seconds:
            seconds *= self._truth.slowdown
            self._held_back += self._truth.held_back * seconds
        self.now += seconds
        self._own += seconds

    def call(self) -> None:
        """Begins a call's work; only `synchronise` waits for it."""
        truth = self._truth
        self._calls += 1
        seconds = truth.call_seconds * (1 + truth.drift_per_second * self.now)
        seconds *= math.exp(self._rng.gauss(0, truth.block_noise))
        if truth.slow_every and self._calls % truth.slow_every == 0:
            seconds *= truth.slow_factor
        self._busy_until = max(self._busy_until, self.now) + seconds
        if truth.escaping:
            self._escaped_until = max(self._escaped_until, self.now) + truth.escaping * seconds
        if truth.lingering_seconds:
            self._escaped_until = self._busy_until + truth.lingering_seconds

    def synchronise(self) -> None:
        """Waits for what was begun, but for what escapes."""
        waited = max(0.0, self._busy_until - self.now)
        self.work(waited + self._truth.synchronise_seconds)
        self._busy_until = self.now
        self._spinning_until = self.now + SPINNING_SECONDS
