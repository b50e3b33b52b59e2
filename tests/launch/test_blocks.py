"""Blocks against a machine whose truth is known: what goes in must come out."""

import gc
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks
from launch.simulation import Simulated

CALL_SECONDS = st.floats(min_value=1e-4, max_value=100.0)
few = settings(max_examples=25, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def _as_in_a_launch() -> Iterator[None]:
    with blocks.garbage_collection_paused():
        yield


def test_the_time_of_a_call_excludes_the_fresh_state() -> None:
    machine = Simulated([0.25])
    assert blocks.time_calls(machine.work(), 3, machine) == pytest.approx(0.75, rel=1e-9)


def test_running_work_is_awaited_before_the_clock_starts_and_before_it_stops() -> None:
    machine = Simulated([0.25])
    blocks.time_calls(machine.work(), 3, machine)
    assert machine.events == ["fresh", "synchronise", "synchronise"]


def test_each_call_gets_the_state_that_the_previous_one_returned() -> None:
    seen: list[Any] = []
    machine = Simulated([0.1])
    blocks.time_calls(machine.work(), 5, machine, seen.append)
    assert seen == [(5, None)]


@few
@given(CALL_SECONDS, st.integers(min_value=1, max_value=10_000))
def test_blocks_give_the_true_seconds_per_unit(call_seconds: float, units: int) -> None:
    machine = Simulated([call_seconds], units=units, now=0.0)
    work = machine.work()
    planned = blocks.plan(blocks.warm_up(work, machine), blocks.overhead_seconds(work, machine))
    measured = blocks.measure_as_planned(work, planned, machine)
    for seconds in measured.seconds:
        assert seconds / measured.units == pytest.approx(call_seconds / units, rel=1e-3)


@given(st.floats(min_value=1e-4, max_value=100.0), st.floats(min_value=0, max_value=100.0))
def test_work_after_a_block_is_a_small_part_of_it_within_the_budget(call_seconds: float, late: float) -> None:
    planned = blocks.plan(call_seconds, 0.0, late)
    length = planned.calls * call_seconds
    assert late <= blocks.LATE_SHARE * length * (1 + 1e-9) or length >= blocks.LONG_BUDGET_SECONDS * (1 - 1e-9)
    outlasting = min(late / blocks.LATE_SHARE, blocks.LONG_BUDGET_SECONDS)
    assert (planned.calls - 2) * call_seconds < max(blocks.BLOCK_SECONDS, outlasting)


@given(st.floats(min_value=1e-7, max_value=100.0), st.floats(min_value=0, max_value=1e-3))
def test_a_block_is_long_against_clock_and_overhead(call_seconds: float, overhead: float) -> None:
    planned = blocks.plan(call_seconds, overhead)
    length = planned.calls * call_seconds
    assert length >= blocks.BLOCK_SECONDS * (1 - 1e-9)
    assert overhead <= blocks.OVERHEAD_SHARE * length * (1 + 1e-9)
    assert (planned.calls - 2) * call_seconds < max(blocks.BLOCK_SECONDS, overhead / blocks.OVERHEAD_SHARE)


@few
@given(CALL_SECONDS)
def test_the_number_of_blocks_follows_the_budget_within_its_limits(call_seconds: float) -> None:
    machine = Simulated([call_seconds], now=0.0)
    measured = list(blocks.measure(machine.work(), blocks.plan(call_seconds, 0.0), machine))
    total = sum(measured)
    assert blocks.MINIMUM_LONG_BLOCKS <= len(measured) <= blocks.MAXIMUM_BLOCKS
    assert len(measured) >= blocks.MINIMUM_BLOCKS or total >= blocks.LONG_BUDGET_SECONDS
    if len(measured) > blocks.MINIMUM_LONG_BLOCKS:
        assert total - measured[-1] < blocks.LONG_BUDGET_SECONDS


@few
@given(CALL_SECONDS, CALL_SECONDS)
def test_warming_up_lasts_the_configured_time(first: float, later: float) -> None:
    machine = Simulated([first, later], now=0.0)
    fastest = blocks.warm_up(machine.work(), machine)
    spent = first + (machine.calls - 1) * later
    assert machine.calls >= blocks.WARM_UP_CALLS
    assert spent >= blocks.WARM_UP_SECONDS * (1 - 1e-6)
    assert min(first, later) * (1 - 1e-6) <= fastest <= max(first, later) * (1 + 1e-6)


def test_a_slow_first_call_is_left_to_the_warm_up() -> None:
    machine = Simulated([10.0, 0.001])
    work = machine.work()
    planned = blocks.plan(blocks.warm_up(work, machine), 0.0)
    assert {round(seconds / planned.calls, 9) for seconds in blocks.measure(work, planned, machine)} == {0.001}


def test_a_step_that_turns_slow_ends_the_launch_early() -> None:
    machine = Simulated([0.001] * 1000 + [5.0])
    measured = list(blocks.measure(machine.work(), blocks.BlockPlan(calls=10, blocks=200), machine))
    assert len(measured) == 101
    assert sum(measured) == pytest.approx(51.0)


def test_the_overhead_of_timing_is_measured() -> None:
    machine = Simulated([1.0], synchronise_seconds=0.002, read_seconds=0.0005)
    assert blocks.overhead_seconds(machine.work(), machine) == pytest.approx(0.003, rel=0.02)


def test_garbage_is_collected_between_blocks_and_never_inside() -> None:
    collected: list[str] = []
    machine = Simulated([0.01])
    machine.events = collected

    def note(phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            collected.append("garbage")

    gc.callbacks.append(note)
    try:
        list(blocks.measure(machine.work(), blocks.BlockPlan(calls=5, blocks=3), machine))
    finally:
        gc.callbacks.remove(note)
    assert collected == ["garbage", "fresh", "synchronise", "synchronise"] * 3
    assert not gc.isenabled()


def test_blocks_planned_on_a_busy_machine_are_planned_again_when_it_is_quiet() -> None:
    machine = Simulated([0.011] * 40 + [0.0001], now=0.0)
    work = machine.work()
    planned = blocks.plan(blocks.warm_up(work, machine), 0.0)
    assert planned.calls == 1
    measured = blocks.measure_as_planned(work, planned, machine)
    assert measured.voided_plans == 1
    assert all(seconds >= blocks.BLOCK_SECONDS * (1 - 1e-9) for seconds in measured.seconds)
    assert (measured.units, len(measured.seconds)) == (100, 100)


def test_a_plan_that_is_good_enough_is_kept_and_nothing_is_measured_twice() -> None:
    machine = Simulated([0.010] * 10 + [0.006], now=0.0)
    measured = blocks.measure_as_planned(machine.work(), blocks.BlockPlan(calls=1, blocks=20, length=0.01), machine)
    assert measured.voided_plans == 0
    assert machine.calls == len(measured.seconds) == 20


def test_a_machine_that_keeps_getting_faster_is_measured_nevertheless() -> None:
    machine = Simulated([1e-3] + [1e-4] * 10 + [1e-5] * 100 + [1e-6], now=0.0)
    measured = blocks.measure_as_planned(machine.work(), blocks.BlockPlan(calls=1, blocks=3, length=0.01), machine)
    assert measured.voided_plans == blocks.MAXIMUM_REPLANS
    assert {round(seconds / measured.units, 12) for seconds in measured.seconds} == {1e-6}


def test_one_slow_reading_does_not_make_every_block_longer() -> None:
    machine = Simulated([1.0], synchronise_seconds=0.00001)
    disturbed = iter([0.05])
    work = machine.work()

    def synchronise(value: Any) -> None:
        work.synchronise(value)
        machine.now += next(disturbed, 0.0)

    again = Work(work.fresh, work.call, work.batches, synchronise, work.units)
    assert blocks.overhead_seconds(again, machine) == pytest.approx(0.00001)


def test_caches_are_emptied_before_the_clock_starts_and_in_every_block() -> None:
    machine = Simulated([0.25])
    work = replace(machine.work(), evict=machine.evict)
    measured = list(blocks.measure(work, blocks.BlockPlan(calls=2, blocks=2), machine))
    assert measured == [0.5, 0.5]
    assert machine.events == ["fresh", "synchronise", "evict", "synchronise"] * 2


def test_device_events_lie_within_the_time_of_the_host() -> None:
    machine = Simulated([0.25], synchronise_seconds=0.5)
    work = replace(machine.work(), events=machine)
    assert blocks.time_calls(work, 4, machine) == 1.5
    assert machine.events == ["fresh", "synchronise", "start", "stop", "synchronise"]
    assert machine.ratios == [1.5]


def test_a_synchronisation_that_does_not_wait_is_detected_by_device_events() -> None:
    machine = Simulated([0.25])
    work = replace(machine.work(), events=machine, synchronise=lambda _state: None)
    blocks.time_calls(work, 4, machine)
    assert machine.ratios == [0.0]
