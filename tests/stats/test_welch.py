import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from accelbench.stats.interval import welch_interval

sides = st.lists(st.floats(-3, 3), min_size=2, max_size=12)


@given(before=sides, after=sides, alpha=st.floats(0.001, 0.3))
def test_the_interval_is_that_of_the_textbook(before: list[float], after: list[float], alpha: float) -> None:
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


def test_without_enough_values_there_is_no_interval() -> None:
    assert welch_interval([], [1.0, 2.0], 0.05) is None
    assert welch_interval([1.0], [2.0], 0.05) is None
    assert welch_interval([0.0, 9.0], [0.0, -9.0], 0.01) is None
    still = welch_interval([1.0, 1.0], [1.0, 1.0], 0.05)
    assert still is not None
    assert (still.estimate, still.log_half_width) == (1.0, 0.0)
