"""Hours of simulated faults: every run ends, nothing is done twice, and nothing of deleted runs stays in memory.

The whole operator runs: its queue, watches, store, retention, delays and election, in processes that are killed and
paused, against an API server in memory.
"""

from collections.abc import Iterator
from itertools import chain, product
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accelbench.api.reasons import AttemptReason
from operator_world.laws import held
from operator_world.nodes import Fate
from operator_world.scenarios import scenarios, storm
from operator_world.world import World, simulated
from tiers import on_a_push

ONE_CASE = {"sizes": (64,)}


def one_a_request(faults: list[list[tuple[int, str]]]) -> Iterator[str]:
    for gap, fault in (each for chapter in faults for each in chapter):
        yield from [""] * gap
        yield fault


def play(scenario: dict[str, Any], replicas: int) -> World:
    """Run the world until everything is deleted; its laws record every violation."""
    faults = one_a_request(scenario["faults"])
    with simulated(seed=scenario["seed"], replicas=replicas, faults=faults, fates=scenario["fates"]) as world:
        world.apply(scenario["first"])
        for step in (each for chapter in scenario["chapters"] for each in chapter):
            world.play(step)
        world.heal()
        world.finish()
        world.empty()
    return world


quick = settings(max_examples=10, derandomize=True, database=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@quick
@given(scenarios(2), st.integers(1, 2))
def test_after_any_faults_every_run_ends_and_nothing_is_done_twice(scenario: dict[str, Any], replicas: int) -> None:
    assert play(scenario, replicas).laws.broken == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replicas", "examples"),
    [(1, 25), pytest.param(1, 100, marks=pytest.mark.nightly), pytest.param(2, 25, marks=pytest.mark.nightly)],
)
def test_after_hours_of_faults_every_run_ends_and_nothing_is_done_twice(
    replicas: int, examples: int, record_property: Any
) -> None:
    hours = 0.0

    @settings(quick, max_examples=examples)
    @given(scenarios(6))
    def search(scenario: dict[str, Any]) -> None:
        nonlocal hours
        world = play(scenario, replicas)
        hours += world.time.seconds / 3600
        assert world.laws.broken == []

    search()
    record_property("simulated hours", round(hours))


@pytest.mark.slow
@pytest.mark.parametrize("replicas", on_a_push([1, 2], lambda replicas: replicas == 2))
@pytest.mark.parametrize("seed", on_a_push(range(4), lambda seed: seed == 0))
def test_in_a_storm_of_faults_every_run_ends_and_nothing_is_done_twice(replicas: int, seed: int) -> None:
    assert play(storm(seed), replicas).laws.broken == []


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("seconds", [20.0, 600.0], ids=["while it runs", "after its end"])
def test_a_run_that_was_deleted_while_its_watch_listed_again_is_forgotten(replicas: int, seconds: float) -> None:
    with simulated(replicas=replicas) as world:
        world.apply(ONE_CASE)
        world.passes(seconds)
        world.expire()
        world.delete("benchmarkruns", 0)
        world.delete("benchmarkresults", 0)
        world.server.compact()
        world.passes(2 * 3600)
        for operator in world.operators():
            assert not {what: count for what, count in held(operator).items() if count}


def test_a_deleted_run_is_not_written_to_repeatedly() -> None:
    with simulated() as world:
        world.apply(ONE_CASE)
        world.passes(20)
        world.expire()
        world.delete("benchmarkruns", 0)
        world.server.compact()
        before = world.laws.requests["PUT"]
        world.passes(1200)
        assert world.laws.requests["PUT"] - before <= 1


def test_an_expired_run_is_deleted_once_even_if_its_watch_is_far_behind() -> None:
    with simulated() as world:
        world.apply(ONE_CASE | {"runPolicy": {"ttlSecondsAfterFinished": 300}})
        world.passes(200)
        world.hang()
        before = world.laws.requests["DELETE"]
        world.passes(3600)
        assert not world.server.all("benchmarkruns")
        assert world.laws.requests["DELETE"] - before == 1


def test_a_leader_that_was_paused_between_two_requests_does_not_send_the_second() -> None:
    often = chain.from_iterable([[*[""] * 12, "still"]] * 20)
    with simulated(replicas=2, faults=often) as world:
        for _ in range(10):
            world.apply({"sizes": (64, 128)})
            world.passes(120)
        world.passes(3600)
        assert world.laws.broken == []
        assert not world.laws.unfinished()


def test_the_queue_keeps_nothing_of_a_deleted_run() -> None:
    with simulated() as world:
        world.apply(ONE_CASE | {"runPolicy": {"ttlSecondsAfterFinished": 7 * 86400}})
        world.passes(600)
        (operator,) = world.operators()
        assert held(operator)["due"] == 1
        world.delete("benchmarkruns", 0)
        world.passes(60)
        assert held(operator)["due"] == 0


def test_the_queue_keeps_of_a_key_only_when_it_is_due_next() -> None:
    with simulated() as world:
        for days in (1, 7):
            world.apply(ONE_CASE | {"runPolicy": {"ttlSecondsAfterFinished": days * 86400}})
        world.passes(600)
        (operator,) = world.operators()
        for _ in range(300):
            world.policy(1, {"ttlSecondsAfterFinished": 7 * 86400})
            world.passes(1.0)
        assert held(operator)["heap"] < 100


def test_failed_attempts_are_counted_by_reason_and_by_whether_the_case_is_tried_again() -> None:
    with simulated(fates=[Fate(1.0, 5.0, "evicted")] * 2) as world:
        world.apply(ONE_CASE | {"runPolicy": {"disruptionRetries": 1}})
        world.passes(4 * 3600)
        (operator,) = world.operators()
        (metric,) = operator.telemetry.failed_attempts.collect()
    counted = {tuple(each.labels.values()): each.value for each in metric.samples if each.name.endswith("_total")}
    # All begin at 0: increase() does not see the first event of a counter that begins at 1.
    none = dict.fromkeys(product(AttemptReason, ("false", "true")), 0)
    assert counted == none | {("Disrupted", "true"): 1, ("Disrupted", "false"): 1}
