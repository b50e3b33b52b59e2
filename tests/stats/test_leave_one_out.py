"""The geometric mean of ratios, with its leave-one-out range."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.leave_one_out import mean_of_ratios

RATIOS = st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=12)


@given(RATIOS)
def test_inverse_ratios_have_the_inverse_mean_and_the_inverse_range(ratios: list[float]) -> None:
    straight, inverse = mean_of_ratios(ratios), mean_of_ratios([1 / ratio for ratio in ratios])
    assert straight
    assert inverse
    assert inverse.mean == pytest.approx(1 / straight.mean)
    assert (inverse.lowest, inverse.highest) == pytest.approx((1 / straight.highest, 1 / straight.lowest))


@given(RATIOS.flatmap(lambda ratios: st.tuples(st.just(ratios), st.permutations(ratios))))
def test_the_order_of_the_cases_changes_nothing(orders: tuple[list[float], list[float]]) -> None:
    one, other = orders
    assert mean_of_ratios(one) == mean_of_ratios(other)


@given(RATIOS, st.floats(0.1, 10))
def test_ratios_that_are_all_scaled_scale_the_mean(ratios: list[float], factor: float) -> None:
    mean, scaled = mean_of_ratios(ratios), mean_of_ratios([factor * ratio for ratio in ratios])
    assert mean
    assert scaled
    assert scaled.mean == pytest.approx(factor * mean.mean)


@given(RATIOS)
def test_the_range_holds_the_mean_and_is_the_range_of_the_means_without_one_case(ratios: list[float]) -> None:
    found = mean_of_ratios(ratios)
    assert found
    assert found.lowest <= found.mean * (1 + 1e-12)
    assert found.mean <= found.highest * (1 + 1e-12)
    others = [[*ratios[:index], *ratios[index + 1 :]] for index in range(len(ratios))]
    means = [math.prod(each) ** (1 / len(each)) for each in others]
    assert (found.lowest, found.highest) == pytest.approx((min(means), max(means)), rel=1e-6)


def test_two_ratios_that_are_worked_out_by_hand() -> None:
    found = mean_of_ratios([2.0, 8.0])
    assert found
    assert (found.mean, found.lowest, found.highest, found.count) == (pytest.approx(4), 2, pytest.approx(8), 2)


@pytest.mark.parametrize("ratios", [[], [2.0]])
def test_a_single_case_has_no_mean(ratios: list[float]) -> None:
    assert mean_of_ratios(ratios) is None
