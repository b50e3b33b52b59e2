"""Launches that observe: they time nothing, which is no failure, and what they saw is in the result."""

from accelbench.delivery.log import LaunchFinished
from runner.simulation import Simulation
from runner.supervision import case_of


def test_a_launch_that_observes_needs_no_block(simulate: Simulation) -> None:
    ended = simulate(case_of("observes", "observes_2"))
    result = ended.result
    assert (result.complete, result.protocol, result.rounds) == (True, "observe", 2)
    assert [variant.failure for variant in result.variants] == [None, None]
    finished = [event for event in ended.events if isinstance(event, LaunchFinished)]
    assert [event.failure for event in finished] == [None] * 4
    for of_variant in result.observations:
        calls, compilations = of_variant.found
        assert (calls.text, compilations.text) == ("4", "1 in 1 launch, 2 in 1")
