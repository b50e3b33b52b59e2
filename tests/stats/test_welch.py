import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accelbench.stats.interval import student_interval
from accelbench.stats.welch import interval_of_mean, welch_interval

sides = st.lists(st.floats(-3, 3), min_size=2, max_size=12)


@given(before=sides, after=sides, alpha=st.floats(0.001, 0.3))
def test_it_is_the_textbooks(before: list[float], after: list[float], alpha: float) -> None:
    found = welch_interval(before, after, alpha)
    if found is None or found.log_half_width == 0 or min(map(_spread, (before, after))) < 1e-3:
        return
    expected = stats.ttest_ind(before, after, equal_var=False).confidence_interval(1 - alpha)
    assert found.log_estimate - found.log_half_width == pytest.approx(expected.low, rel=1e-6, abs=1e-9)
    assert found.log_estimate + found.log_half_width == pytest.approx(expected.high, rel=1e-6, abs=1e-9)


def _spread(values: list[float]) -> float:
    return max(values) - min(values)


@given(before=sides, after=sides)
def test_swapping_the_sides_inverts_it(before: list[float], after: list[float]) -> None:
    there, back = welch_interval(before, after, 0.05), welch_interval(after, before, 0.05)
    assert (there is None) == (back is None)
    if there and back:
        assert there.log_estimate == pytest.approx(-back.log_estimate, abs=1e-12)
        assert there.log_half_width == pytest.approx(back.log_half_width, rel=1e-9)


@given(before=st.floats(-3, 3), after=sides)
def test_one_number_against_several_is_students_two_sample_interval(before: float, after: list[float]) -> None:
    found = welch_interval([before], after, 0.05)
    if found is None or found.log_half_width == 0 or _spread(after) < 1e-3:
        return
    error = stats.tstd(after) * math.sqrt(1 + 1 / len(after))
    assert found.log_half_width == pytest.approx(stats.t.ppf(0.975, len(after) - 1) * error, rel=1e-6)


def test_where_nothing_can_be_said_there_is_no_interval() -> None:
    assert welch_interval([], [1.0, 2.0], 0.05) is None
    assert welch_interval([1.0], [2.0], 0.05) is None
    assert welch_interval([0.0, 9.0], [0.0, -9.0], 0.01) is None
    still = welch_interval([1.0, 1.0], [1.0, 1.0], 0.05)
    assert still is not None
    assert (still.estimate, still.log_half_width) == (1.0, 0.0)


@given(sample=sides, alpha=st.floats(0.001, 0.3))
def test_the_mean_of_one_sample_has_students_interval(sample: list[float], alpha: float) -> None:
    alone, students = interval_of_mean([sample], alpha), student_interval(sample, alpha)
    assert (alone is None) == (students is None)
    if alone and students:
        assert alone.log_estimate == pytest.approx(students.log_estimate, abs=1e-12)
        assert alone.log_half_width == pytest.approx(students.log_half_width, rel=1e-6)


@given(first=sides, second=sides)
def test_the_mean_of_two_is_half_the_difference_from_the_seconds_mirror_image(
    first: list[float], second: list[float]
) -> None:
    mean, difference = interval_of_mean([first, second], 0.05), welch_interval(first, [-each for each in second], 0.05)
    if mean and difference:
        assert mean.log_estimate == pytest.approx(difference.log_estimate / 2, abs=1e-12)
        assert mean.log_half_width == pytest.approx(difference.log_half_width / 2, rel=1e-9)


def test_the_interval_of_a_mean_misses_as_often_as_it_says() -> None:
    """Five cases, of unlike spreads and unlike numbers of rounds, 4,000 times."""
    noise = np.random.default_rng(7)
    spreads = {0.001: 5, 0.01: 6, 0.03: 8, 0.05: 10, 0.1: 5}
    missed, times = 0, 4_000
    for _ in range(times):
        found = interval_of_mean([list(noise.normal(1, s, n)) for s, n in spreads.items()], 0.05)
        assert found is not None
        missed += abs(found.log_estimate - 1) > found.log_half_width
    assert 0.035 < missed / times < 0.065


def test_a_mean_over_nothing_or_over_single_numbers_has_no_interval() -> None:
    assert interval_of_mean([], 0.05) is None
    assert interval_of_mean([[1.0, 2.0], [1.0]], 0.05) is None
