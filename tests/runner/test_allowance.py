"""Test how long a launch may take, and which limit ends it."""

from collections.abc import Sequence

import pytest

from accelbench_runner.supervisor.allowance import HANG_SECONDS, Allowance, Limit, launch_limit, warm_limit


def limit_of(remaining: float, *, launches: int, left: int, earlier: Sequence[float] = ()) -> float:
    """Return the limit in a case of 600 s with at least five rounds."""
    limit = launch_limit(
        remaining,
        time_limit=600,
        round_launches=launches,
        launches_left=left,
        rounds_min=5,
        earlier_seconds=earlier,
    )
    return limit.seconds


def test_a_first_launch_that_hangs_leaves_the_others_their_share_of_the_time() -> None:
    assert limit_of(600, launches=3, left=3) == 200
    assert limit_of(500, launches=3, left=2) == 250


def test_a_first_launch_may_take_what_the_least_number_of_rounds_allows() -> None:
    assert limit_of(600, launches=16, left=16) == 120


def test_a_first_launch_with_little_time_left_is_late_only_after_an_even_share() -> None:
    assert limit_of(7, launches=3, left=1) == 200
    assert limit_of(250, launches=3, left=1) == 250


def test_a_later_launch_hangs_if_it_takes_five_times_as_long_as_the_longest_before() -> None:
    assert limit_of(500, launches=2, left=2, earlier=[10, 20]) == 100
    assert limit_of(500, launches=2, left=2, earlier=[0.1]) == HANG_SECONDS


def test_a_warm_probe_may_take_twice_a_cold_start_and_at_least_the_limit_of_any_probe() -> None:
    assert warm_limit(60.0, 20.0).seconds == 120
    assert warm_limit(0.5, 20.0).seconds == 20


class Passing:
    """A clock that a test moves, and an allowance of 10 s in a case of 60 s, with probes of 20 s."""

    def __init__(self, case_seconds: float = 60.0) -> None:
        self.now = 100.0
        self.allowance = Allowance(Limit(10.0, "its share"), case_seconds, 20.0, clock=lambda: self.now)

    def left(self) -> float:
        return self.allowance.seconds_left(self.now - 100.0)


def test_a_slow_probe_makes_no_launch_late() -> None:
    launch = Passing()
    launch.now += 4
    launch.allowance.probe_began()
    launch.now += 15
    assert launch.left() == pytest.approx(5)
    assert launch.allowance.nearest_limit == "probe"
    launch.allowance.probe_ended()
    assert launch.left() == pytest.approx(6)
    assert launch.allowance.nearest_limit == "launch"
    assert launch.allowance.total_probe_seconds == pytest.approx(15)


def test_several_probes_have_a_limit_each() -> None:
    launch = Passing()
    for _ in range(2):
        launch.allowance.probe_began()
        launch.now += 19
        assert launch.left() == pytest.approx(1)
        launch.allowance.probe_ended()
    assert launch.left() == pytest.approx(10)


@pytest.mark.parametrize("probing", [False, True])
def test_the_cases_limit_ends_any_launch(probing: bool) -> None:
    launch = Passing(case_seconds=5.0)
    if probing:
        launch.allowance.probe_began()
    launch.now += 2
    assert launch.left() == pytest.approx(3)
    assert launch.allowance.nearest_limit == "case"


def test_a_launch_with_all_remaining_time_of_the_case_is_late_itself() -> None:
    launch = Passing(case_seconds=10.0)
    launch.now += 10
    assert launch.left() == 0
    assert launch.allowance.nearest_limit == "launch"


class Crowded(Passing):
    """Where others take a share of the processors all the time; 10 s of what they leave, in a case of 600 s."""

    def __init__(self, share: float) -> None:
        super().__init__(case_seconds=600.0)
        self.asked = 0
        own = Limit(10.0, "its limit", extended_by_load=True)
        self.allowance = Allowance(own, 600.0, 20.0, others_share=lambda: self.share(share), clock=lambda: self.now)

    def share(self, share: float) -> float:
        self.asked += 1
        return share

    def ended_after(self) -> float:
        """Seconds until nothing is left, where one looks when time is up and not before."""
        for _ in range(1000):
            if (left := self.left()) <= 0:
                return self.now - 100.0
            self.now += left + 1e-3
        raise AssertionError("it goes on and on")


@pytest.mark.parametrize(("share", "seconds"), [(0.0, 10), (0.5, 20), (0.8, 50), (1.0, 50)])
def test_time_during_which_others_used_the_processors_does_not_count_as_a_hang(share: float, seconds: float) -> None:
    launch = Crowded(share)
    assert launch.ended_after() == pytest.approx(seconds, rel=1e-3)
    assert launch.allowance.nearest_limit == "launch"
    assert launch.allowance.granted_seconds == pytest.approx(seconds, rel=0.02)


def test_other_load_is_read_only_when_the_limit_is_reached() -> None:
    launch = Crowded(0.5)
    launch.now += 9.9
    assert launch.left() == pytest.approx(0.1)
    assert launch.asked == 0
