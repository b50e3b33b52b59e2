import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.summary import QUANTITIES, Quantity, quantile, seconds_per_unit
from accelbench.workload import ProtocolName

PERCENTS = (5, 25, 50, 75, 95)


def test_a_launch_is_the_median_of_its_blocks_per_unit() -> None:
    assert seconds_per_unit([(10, 1.0), (10, 1.2), (5, 5.0)]) == pytest.approx(0.12)


def test_a_launch_without_blocks_has_no_seconds() -> None:
    assert seconds_per_unit([]) is None


def test_quantiles_interpolate_between_neighbours() -> None:
    assert [quantile([float(number) for number in range(101)], percent) for percent in PERCENTS] == list(PERCENTS)


def test_one_value_is_all_quantiles() -> None:
    assert {quantile([3.0], percent) for percent in PERCENTS} == {3.0}


def test_nothing_has_no_quantiles() -> None:
    with pytest.raises(ValueError, match="empty sample"):
        quantile([], 50)


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=60))
def test_quantiles_are_ordered_and_within_the_sample(values: list[float]) -> None:
    numbers = [min(values), *(quantile(values, percent) for percent in PERCENTS), max(values)]
    assert all(after >= before * (1 - 1e-12) for before, after in itertools.pairwise(numbers))


CALLS = [(1, 0.001 * (1 + number)) for number in range(101)]


@pytest.mark.parametrize(("quantity", "expected"), [("median", 0.051), ("p50", 0.051), ("p99", 0.100), ("mean", 0.051)])
def test_the_value_of_a_launch_is_the_requested_quantity(quantity: Quantity, expected: float) -> None:
    assert seconds_per_unit(CALLS, quantity) == pytest.approx(expected)


def test_the_mean_weighs_every_unit_alike() -> None:
    assert seconds_per_unit([(1, 1.0), (9, 1.0)], "mean") == pytest.approx(0.2)


@pytest.mark.parametrize("protocol", get_args(ProtocolName))
def test_every_protocol_defines_the_compared_quantity(protocol: ProtocolName) -> None:
    assert isinstance(QUANTITIES[protocol], tuple)
