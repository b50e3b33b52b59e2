"""When there is no time for another round, and what is said of it."""

from collections.abc import Callable

from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_the_time_limit_ends_the_case_and_only_complete_rounds_count(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=1000, limit=3))
    assert ended.result.stopped in {"TimeLimitReached", "NoTimeForRound"}
    assert ended.result.complete
    assert 1 <= ended.result.rounds < 1000
    assert {len(variant.launches) for variant in ended.result.variants} == {ended.result.rounds}


def test_measuring_stops_when_the_judge_has_seen_enough(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=9), judge="stops")
    assert ended.result.stopped == "TargetMet"
    assert ended.result.rounds == 1


def test_a_variant_that_failed_late_takes_no_further_round_from_the_others(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", "hangs", rounds=3, limit=10))
    assert ended.result.stopped == "MaximumRoundsReached"
    assert {variant.name: len(variant.launches) for variant in ended.result.variants} == {
        "fine": 3,
        "fine_2": 3,
        "hangs": 0,
    }
