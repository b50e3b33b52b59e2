"""Launches that observe: they time nothing, which is no failure, and what they saw is in the result."""

from collections.abc import Callable

from accelbench.delivery.log import LaunchFinished
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_a_launch_that_observes_needs_no_block(run: Run) -> None:
    ended = run(case_of("observes", "observes_2"))
    assert ended.status == 0
    result = ended.result
    assert (result.complete, result.protocol, result.rounds) == (True, "observe", 2)
    assert [variant.failure for variant in result.variants] == [None, None]
    finished = [event for event in ended.events if isinstance(event, LaunchFinished)]
    assert [event.failure for event in finished] == [None] * 4
    for of_variant in result.observations:
        calls, compilations = of_variant.found
        assert (calls.text, compilations.text) == ("4", "1 in 1 launch, 2 in 1")
