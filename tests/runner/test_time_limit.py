"""Test what ends a case: its time limit, the judge, failures; in simulated time."""

import pytest

from accelbench.delivery.log import LaunchFinished
from runner.simulation import JUDGE_SECONDS, LAUNCH_SECONDS, Simulation
from runner.supervision import case_of, seed_of

ROUND_SECONDS = 2 * LAUNCH_SECONDS + JUDGE_SECONDS
"""Of two variants."""


def test_measuring_stops_when_no_further_round_fits_the_time_limit(simulate: Simulation) -> None:
    result = simulate(case_of("fine", "fine_2", rounds=1000, limit=61)).result
    assert result.stopped == "NoTimeForRound"
    assert result.complete
    assert result.rounds == 61 // ROUND_SECONDS
    assert {len(variant.launches) for variant in result.variants} == {result.rounds}


def test_a_variant_that_failed_late_costs_the_others_no_further_round(simulate: Simulation) -> None:
    result = simulate(case_of("fine", "fine_2", "hangs", rounds=3, limit=60)).result
    assert result.stopped == "MaximumRoundsReached"
    launches = {variant.name: len(variant.launches) for variant in result.variants}
    assert launches == {"fine": 3, "fine_2": 3, "hangs": 0}


def test_a_launch_that_hangs_takes_only_its_share_of_the_time_limit(simulate: Simulation) -> None:
    hung = next(one for one in simulate(case_of("fine", "hangs", limit=60)).launches if one.variant == "hangs")
    assert hung.failure is not None
    assert (hung.failure.reason, hung.failure.phase) == ("TimedOut", "setup")
    assert 30 <= hung.wall_seconds <= 60


def test_a_launch_stopped_by_the_time_limit_in_a_later_round_has_not_failed(simulate: Simulation) -> None:
    names = ("fine", "hangs-in-round-2")
    ended = simulate(case_of(*names, limit=20, rounds=3, seed=seed_of(names, names, number=2)))
    assert ended.result.stopped == "TimeLimitReached"
    assert ended.result.complete
    assert ended.result.rounds == 1
    assert ended.variant("hangs-in-round-2").failure is None
    assert len(ended.variant("fine").launches) == 1
    assert ended.result.notes == ("round 2 was not completed: 2 launches were discarded",)


def test_a_step_that_hangs_while_its_outputs_are_computed_is_the_variants_own_failure(simulate: Simulation) -> None:
    failure = simulate(case_of("fine", "parity-hangs", "fine_2")).variant("parity-hangs").failure
    assert failure is not None
    assert failure.reason == "TimedOut"
    assert "parity" in failure.message


@pytest.mark.parametrize(("variant", "measured"), [("limits-hangs", 1), ("watch-hangs", 0)])
def test_a_probe_that_hangs_until_the_cases_time_is_up_fails_no_variant(
    simulate: Simulation, variant: str, measured: int
) -> None:
    ended = simulate(case_of(variant, "fine", limit=10), probe_seconds=20)
    assert [variant.failure for variant in ended.result.variants] == [None, None]
    assert ended.result.stopped == "TimeLimitReached"
    assert sum("limits" in launch.unchecked for launch in ended.launches if launch.variant == variant) == measured


def test_a_monitor_that_hangs_between_blocks_is_a_failed_probe(simulate: Simulation) -> None:
    ended = simulate(case_of("glance-hangs", "fine", limit=100))
    assert ended.variant("glance-hangs").failure is None
    assert len(ended.variant("glance-hangs").launches) == 1
    finished = [event for event in ended.events if isinstance(event, LaunchFinished)]
    assert [event.unfinished for event in finished if event.variant == "glance-hangs"] == ["probe", None]


def test_measuring_stops_when_the_judge_needs_no_more_rounds(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "fine_2", rounds=9), judge="stops")
    assert ended.result.stopped == "TargetMet"
    assert ended.result.rounds == 1
