"""How long a launch may take, and when there is no time for another round."""

from collections.abc import Callable

import pytest

from accelbench_runner.allowance import HANG_SECONDS, launch_limit
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


def test_a_first_launch_that_hangs_leaves_the_others_their_share() -> None:
    assert launch_limit(600, time_limit=600, left=3, rounds_min=5, before=[]) == 200
    assert launch_limit(400, time_limit=600, left=2, rounds_min=5, before=[]) == 200


def test_a_first_launch_may_take_what_the_least_number_of_rounds_allows() -> None:
    assert launch_limit(600, time_limit=600, left=16, rounds_min=5, before=[]) == 120


def test_a_later_launch_hangs_when_it_takes_five_times_the_longest_before_it() -> None:
    assert launch_limit(500, time_limit=600, left=2, rounds_min=5, before=[10, 20]) == 100
    assert launch_limit(500, time_limit=600, left=2, rounds_min=5, before=[0.1]) == HANG_SECONDS


@pytest.mark.parametrize("before", [[], [100]])
def test_no_launch_may_take_longer_than_what_is_left(before: list[float]) -> None:
    assert launch_limit(7, time_limit=600, left=1, rounds_min=5, before=before) == 7


def test_the_time_limit_ends_the_case_and_only_complete_rounds_count(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=1000, limit=3))
    assert ended.result.stopped == "time-limit"
    assert ended.result.complete
    assert 1 <= ended.result.rounds < 1000
    assert {len(variant.launches) for variant in ended.result.variants} == {ended.result.rounds}


def test_measuring_stops_when_the_judge_has_seen_enough(run: Run) -> None:
    ended = run(case_of("fine", "fine_2", rounds=9), judge="stops")
    assert ended.result.stopped == "target-met"
    assert ended.result.rounds == 1
