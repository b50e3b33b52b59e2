import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.summary import FiveNumbers, five_numbers, seconds_per_unit


def test_a_launch_is_the_median_of_its_blocks_per_unit() -> None:
    assert seconds_per_unit([(10, 1.0), (10, 1.2), (5, 5.0)]) == pytest.approx(0.12)


def test_a_launch_without_blocks_has_no_seconds() -> None:
    assert seconds_per_unit([]) is None


def test_quantiles_interpolate_between_neighbours() -> None:
    assert five_numbers([float(number) for number in range(101)]) == FiveNumbers(5, 25, 50, 75, 95)


def test_one_value_is_all_quantiles() -> None:
    assert five_numbers([3.0]) == FiveNumbers(3, 3, 3, 3, 3)


def test_nothing_has_no_quantiles() -> None:
    with pytest.raises(ValueError, match="empty sample"):
        five_numbers([])


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60))
def test_quantiles_are_ordered_and_within_the_sample(values: list[float]) -> None:
    five = five_numbers(values)
    numbers = [min(values), five.p5, five.p25, five.median, five.p75, five.p95, max(values)]
    assert all(after >= before * (1 - 1e-12) for before, after in itertools.pairwise(numbers))
