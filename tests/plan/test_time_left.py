"""The estimated duration of the rest of a suite."""

from accelbench.plan.time_left import MeasuredTime, time_left


def test_without_a_measured_case_the_limits_are_all_that_is_known() -> None:
    left = time_left([600, 300], [])
    assert (left.limit_seconds, left.expected_seconds) == (900, None)
    assert "15 min" in str(left)


def test_open_cases_are_expected_to_use_the_share_of_their_limits_that_measured_ones_used() -> None:
    left = time_left([600, 300], [MeasuredTime(60, 600), MeasuredTime(30, 300)])
    assert (left.limit_seconds, left.expected_seconds) == (900, 90)
    assert "1 min 30 s" in str(left)


def test_a_case_that_took_longer_than_its_limit_makes_no_estimate_above_the_limits() -> None:
    assert time_left([100], [MeasuredTime(170, 100)]).expected_seconds == 100


def test_a_measured_suite_has_no_time_left() -> None:
    assert time_left([], [MeasuredTime(60, 600)]).expected_seconds == 0
