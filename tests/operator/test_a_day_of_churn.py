"""After 24 simulated hours of a busy cluster, memory holds what existing runs need, and nothing of the others."""

import logging
from collections.abc import Sequence
from random import Random

import pytest

from operator_world.churn import Hour, churn, fates, faults, measured, of_a_cluster
from operator_world.world import simulated

PERIOD_SECONDS = 180.0
RESULTS = 50
"""As in `benchmarks/churn.py`, with a third of the runs: they fill up within three hours here too."""
QUARTERS = 4
"""Of a day; after each all runs and results are deleted."""
OF_A_RUN = ("keys", "phases", "known", "events", "versions", "memories", "due", "failures")
HELD_OF_A_RUN = 50
"""Bytes that each run may leave: a name takes 86. Tables that grew for many do not shrink: a few KiB either way."""
INSTANCES_OF_A_RUN = 0.5
"""Of any class of accelbench, also where no store, queue or reconciler holds them."""


@pytest.mark.slow
@pytest.mark.parametrize("hours_of_quarter", [2, pytest.param(6, marks=pytest.mark.nightly)])
def test_memory_does_not_grow_in_a_day_of_churn(hours_of_quarter: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)  # pytest keeps what is logged, and that is not the operator's memory
    random = Random(1)  # noqa: S311 - a day that can be had again
    some, every = faults(random, 0.01), fates(random)
    hours: list[Hour] = []
    left: list[Hour] = []
    with simulated(seed=1, settings=of_a_cluster(RESULTS)) as world:
        for _ in range(QUARTERS):
            world.trouble(some, every)
            hours += churn(world, hours_of_quarter, PERIOD_SECONDS)
            world.heal()
            world.finish()
            world.empty()
            left.append(measured(world, len(hours)))
    assert world.laws.broken == []
    assert hours[-1].made > 75 * hours_of_quarter
    assert_counts_match_existing_objects(hours)
    runs = left[3].made - left[1].made
    assert grown([hour.instances for hour in left]) <= INSTANCES_OF_A_RUN * runs
    assert 1024 * grown([sum(hour.kilobytes) for hour in left]) <= HELD_OF_A_RUN * runs


def assert_counts_match_existing_objects(hours: list[Hour]) -> None:
    """Assert that each count is at most that of the existing runs, and one that was just deleted."""
    for hour in hours:
        (held,) = hour.held
        assert {name: held[name] for name in OF_A_RUN if held[name] > hour.runs + 1} == {}
        assert held["BenchmarkResult"] <= hour.results + 1 <= RESULTS + 30
        assert held["heap"] <= 2 * held["due"] + 64 + 1


def grown(numbers: Sequence[float]) -> float:
    """Return the growth from the first half to the second, between the idle minima; a leak never shrinks."""
    return min(numbers[2:]) - min(numbers[:2])
