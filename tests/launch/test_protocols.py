"""Steps measured call by call, and in one ordered pass, in real launches."""

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from accelbench.api.case import Arrivals, CaseMeasurement
from accelbench.catalogue.workload_checks import InvalidWorkloadError, check_step
from accelbench.stats.arrivals import arrival_times
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks
from launch.launching import LATER, case, launch
from launch.simulation import Simulated

pytestmark = pytest.mark.slow


def test_latency_times_every_call_by_itself_with_garbage_collection_on(tmp_path: Path) -> None:
    launched = launch(tmp_path, case("by-call", "pytorch/uneven"))
    assert launched.failure is None, launched.failure
    assert launched.facts["protocol"] == "latency"
    assert {block.units for block in launched.blocks} == {1}
    assert len(launched.blocks) >= blocks.MINIMUM_LATENCY_CALLS
    seconds = [block.seconds for block in launched.blocks]
    assert sum(call >= 0.001 for call in seconds) >= len(seconds) // 10, "the step sleeps so long in every tenth call"
    assert min(seconds) >= 0.0001
    assert launched.facts["clock"]["readingSeconds"] > 0
    with np.load(tmp_path / "outputs.npz") as outputs:
        assert outputs["x"].tolist() == [3.0] * 8


def test_requests_are_served_by_the_rounds_schedule_and_timed_from_their_arrival(tmp_path: Path) -> None:
    settings = CaseMeasurement(protocol="arrivals", arrivals=Arrivals(rate_per_second=1000, requests=200))
    launched = launch(tmp_path, case("by-call", "pytorch/uneven").model_copy(update={"measurement": settings}))
    assert launched.failure is None, launched.failure
    assert (launched.facts["protocol"], launched.facts["unit"]) == ("arrivals", "request")
    assert [block.units for block in launched.blocks] == [1] * 200
    # A request is ready when it arrives or the one before it ends, so its service is never longer than its response.
    assert all(block.response_seconds is not None for block in launched.blocks)
    assert all((block.response_seconds or 0) >= block.seconds for block in launched.blocks)
    assert any((block.response_seconds or 0) >= block.seconds + 0.0005 for block in launched.blocks), "some wait"
    lateness = launched.facts["lateness"]
    assert 0 <= lateness["medianSeconds"] <= lateness["p99Seconds"]
    schedule = arrival_times(
        rate_per_second=1000, process="poisson", requests=200, seed=0, case="all", round_number=LATER
    )
    assert launched.phases["steady"].seconds >= schedule[-1]


@pytest.mark.parametrize("use", ["jax/jit", "pytorch/compile-no-code"])
def test_an_episode_is_one_ordered_pass_with_its_compiling_counted(use: str, tmp_path: Path) -> None:
    launched = launch(tmp_path, case("in-one-pass", use))
    assert launched.failure is None, launched.failure
    assert launched.facts["protocol"] == "episode"
    assert len(launched.blocks) == launched.facts["parityUnits"] == 6
    assert launched.facts["recompilations"] >= 2
    assert launched.facts["recompilationCauses"]
    assert len(launched.facts["synchronisation"]["runs"]) == 1
    assert list(launched.phases) == ["import", "device-init", "setup", "steady"]
    compiling, steady = sum(launched.phases["steady"].parts.values()), launched.phases["steady"].seconds
    assert 0 < compiling < steady
    assert sum(block.seconds for block in launched.blocks) > compiling
    with np.load(tmp_path / "outputs.npz") as outputs:
        assert outputs["x"].tolist() == [18.0] * 8


def test_slow_calls_have_a_long_budget_and_are_enough_for_a_percentile() -> None:
    machine = Simulated([0.1], now=0.0)
    measured = list(blocks.measure(machine.work(), blocks.LATENCY, machine))
    assert len(measured) == 300
    machine = Simulated([2.0], now=0.0)
    assert len(list(blocks.measure(machine.work(), blocks.LATENCY, machine))) == blocks.MINIMUM_LATENCY_CALLS


def test_every_single_timed_call_starts_fresh_and_is_awaited() -> None:
    machine = Simulated([0.001, 0.002, 0.003], now=0.0)
    planned = blocks.BlockPlan(calls=1, blocks=3, collects_garbage=False)
    measured = list(blocks.measure(machine.work(), planned, machine))
    assert measured == pytest.approx([0.001, 0.002, 0.003])
    assert machine.events == ["fresh", "synchronise", "synchronise"] * 3


def test_an_episode_gives_each_call_its_batch_and_the_state_before() -> None:
    seen = []
    machine = Simulated([0.5, 0.1, 0.2], now=0.0)
    work = machine.work()

    def call(state: int, batch: str) -> tuple[int, None]:
        seen.append((state, batch))
        return work.call(state, "batches")

    passing = Work(work.fresh, call, None, work.synchronise, units=2)
    timed, (state, _) = blocks.episode(passing, ["a", "b", "c"], machine)
    assert seen == [(0, "a"), (1, "b"), (2, "c")]
    assert state == 3
    assert (timed.units, timed.seconds) == (2, pytest.approx((0.5, 0.1, 0.2)))


def test_an_episode_reports_a_call_that_returned_no_pair_of_state_and_output() -> None:
    machine = Simulated([0.5], now=0.0)

    def step(state: int, _batch: str) -> int:
        return state

    work = Work(lambda: 0, step, None, lambda _: None, units=1, check=partial(check_step, step))  # type: ignore[arg-type]
    with pytest.raises(InvalidWorkloadError, match=r"returned a int; a step has to return a tuple of two"):
        blocks.episode(work, ["a"], machine)
