"""When there is no time for another round, and what is said of it."""

from collections.abc import Callable

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_measuring_stops_when_the_judge_has_seen_enough(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=9), judge="stops")
    assert ended.result.stopped == "TargetMet"
    assert ended.result.rounds == 1
