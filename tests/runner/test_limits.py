"""When there is no time for another round, and what is said of it."""

from runner.simulation import Simulation
from runner.supervision import case_of


def test_measuring_stops_when_the_judge_has_seen_enough(simulate: Simulation) -> None:
    ended = simulate(case_of("fine", "fine_2", rounds=9), judge="stops")
    assert ended.result.stopped == "TargetMet"
    assert ended.result.rounds == 1
