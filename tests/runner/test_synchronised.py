"""Test how late work is found after a run of calls, next to delays by other threads."""

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any

import pytest

from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch.synchronisation import MAXIMUM_RUNS, PATIENCE_SECONDS, LateWork

CALL_SECONDS = 0.05


class Machine:
    """Other threads of the process are busy for a while after each run of calls, and after each of our products'."""

    def __init__(self, after_calls: Iterator[float], after_products: Iterator[float]) -> None:
        self._after_calls, self._after_products = after_calls, after_products
        self._now = self._burnt = self._busy_until = 0.0
        self._run = False

    def seconds(self) -> float:
        return self._now

    def raw_seconds(self) -> float:
        return self._now

    def pause(self, seconds: float) -> None:
        busy = max(0.0, min(seconds, self._busy_until - self._now))
        self._burnt, self._now = self._burnt + busy, self._now + seconds

    def other_threads_seconds(self) -> float:
        return self._burnt

    def call(self, state: Any, _batches: Any) -> tuple[Any, None]:
        self._now, self._run = self._now + CALL_SECONDS, True
        return state, None

    def drain(self) -> None:
        """Is asked first when a clock has stopped."""
        after = self._after_calls if self._run else self._after_products
        self._run = False
        self._busy_until = max(self._busy_until, self._now + next(after))

    def ready(self, _value: Any) -> bool:
        return True

    def product(self, size: int) -> Callable[[], None]:
        def call() -> None:
            self._now += size * 1e-4

        return call


def late(after_calls: Sequence[float], after_products: Iterator[float]) -> float:
    machine = Machine(iter(after_calls), after_products)
    work = Work(fresh=lambda: 0, call=machine.call, batches=(), synchronise=lambda _: None, units=1)
    found = LateWork(machine, machine, machine.other_threads_seconds, lambda probe: probe()).measure(
        work, calls=1, with_long_run=False
    )
    assert found is not None
    [run] = found.runs
    assert run.seconds == pytest.approx(CALL_SECONDS)
    return run.late_seconds


def test_work_that_is_late_after_each_run_counts_as_late() -> None:
    assert late([0.2, 0.3, 0.25], repeat(0.0)) == pytest.approx(0.2, rel=0.05)


def test_work_that_is_late_now_and_then_does_not_count_as_late() -> None:
    assert late([0.2, 0.3, 0.0], repeat(0.0)) == 0


def test_a_run_without_late_work_is_made_once() -> None:
    assert late([0.0], repeat(0.0)) == 0


def test_work_no_later_than_our_own_products_does_not_count_as_late() -> None:
    while_compiled = 0.0
    assert late([0.2, 0.25], iter([while_compiled, 0.05, 0.3])) == 0


def test_work_that_outlasts_every_pool_counts_as_late_even_if_the_process_is_busy() -> None:
    assert late([9.0] * MAXIMUM_RUNS, repeat(9.0)) == pytest.approx(PATIENCE_SECONDS, rel=0.05)
