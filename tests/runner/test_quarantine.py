"""Test that a disturbed round is measured again in the same order, and does not count."""

from accelbench.delivery.log import LaunchStarted, RoundFinished
from accelbench.plan.round_order import round_order
from accelbench.report import advice as advices
from runner.simulation import Simulation
from runner.supervision import case_of


def test_a_disturbed_round_is_repeated_and_its_launches_do_not_count(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "fine_2", "fine_3", rounds=3), judge="disturbed-in-round-2")
    result = ended.result
    assert (result.rounds, result.stopped) == (3, "MaximumRoundsReached")
    assert [each.round for each in result.quarantined] == [2]
    for variant in result.variants:
        assert [launch.round for launch in variant.launches] == [1, 3, 4]
    reasons = ("shared-device of fine: 40 %",)
    advice = advices.disturbance_advice(reasons, result.fingerprint)
    assert [(event.quarantined, event.advice) for event in ended.events if isinstance(event, RoundFinished)] == [
        ((), None),
        (reasons, advice),
        ((), None),
        ((), None),
    ]


def test_the_repetition_takes_the_place_of_the_round_in_the_schedule(simulate: Simulation) -> None:
    names = ("fine", "fine_2", "fine_3", "fine_4")
    ended = simulate(case_of(*names, rounds=3, seed=3), judge="disturbed-in-round-2")
    started = [event for event in ended.events if isinstance(event, LaunchStarted)]
    orders = [tuple(event.variant for event in started if event.round == number) for number in (1, 2, 3, 4)]
    planned = [round_order(names, seed=3, case="all", round_number=number) for number in (1, 2, 3)]
    assert orders == [planned[0], planned[1], planned[1], planned[2]]
