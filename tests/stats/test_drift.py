# ruff: noqa: S311 - samples, no secrets
import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.drift import LIMIT, common_drift, launch_drift, log_change, trend

SERIES = 1500


def remembering(rng: random.Random, count: int, memory: float) -> list[float]:
    """Normal values with deviation 1, each remembering so much of the one before it."""
    value, values = rng.gauss(0, 1), []
    for _ in range(count):
        value = memory * value + math.sqrt(1 - memory**2) * rng.gauss(0, 1)
        values.append(value)
    return values


def blocks(rng: random.Random, count: int, *, drift: float = 0.0, sigma: float = 0.01) -> list[float]:
    return [0.01 * (1 + sigma * rng.gauss(0, 1)) * (1 + drift * index / count) for index in range(count)]


@pytest.mark.parametrize(("count", "memory"), [(10, 0.0), (50, 0.0), (50, 0.5), (100, 0.8), (200, 0.9), (50, -0.5)])
def test_a_stationary_series_fails_at_most_once_in_a_hundred(count: int, memory: float) -> None:
    rng = random.Random(f"{count}/{memory}")
    alarms = sum(abs(trend(remembering(rng, count, memory))) > LIMIT for _ in range(SERIES)) / SERIES
    assert alarms <= 0.01 + 2 * math.sqrt(0.01 * 0.99 / SERIES)


def test_a_slow_block_now_and_then_is_no_drift() -> None:
    rng = random.Random(3)
    alarms = 0
    for _ in range(SERIES):
        values = [value * (5 if rng.random() < 0.03 else 1) for value in blocks(rng, 100)]
        alarms += launch_drift(values).evident
    assert alarms / SERIES <= 0.01


@pytest.mark.parametrize("drift", [0.05, -0.05])
def test_a_drift_of_five_percent_is_evident_in_noise_of_one(drift: float) -> None:
    rng = random.Random(4)
    found = [launch_drift(blocks(rng, 50, drift=drift)) for _ in range(100)]
    assert sum(each.evident for each in found) >= 99
    assert all(math.copysign(1, each.log_change) == math.copysign(1, drift) for each in found)


def test_a_warm_up_that_was_too_short_is_evident() -> None:
    rng = random.Random(5)
    settling = [value * (1 + 0.1 * math.exp(-index / 40)) for index, value in enumerate(blocks(rng, 100))]
    found = launch_drift(settling)
    assert found.evident
    assert found.log_change < -0.01


def test_a_few_slow_blocks_at_the_beginning_leave_the_halves_alike() -> None:
    values = blocks(random.Random(6), 100)
    assert abs(log_change([1.0] * 5 + values[5:])) < 0.005


def test_a_step_in_the_middle_of_a_still_launch_is_evident() -> None:
    assert launch_drift([0.01] * 50 + [0.011] * 50).evident


def test_a_straight_line_without_noise_is_evident() -> None:
    assert trend([float(index) for index in range(20)]) > LIMIT
    assert trend([float(-index) for index in range(20)]) < -LIMIT


@pytest.mark.parametrize("count", [10, 11, 200])
def test_blocks_that_all_take_the_same_time_do_not_drift(count: int) -> None:
    found = launch_drift([0.01] * count)
    assert (found.log_change, found.evident) == (0.0, False)


def test_few_blocks_cannot_distinguish_drift_from_chance() -> None:
    assert launch_drift([0.01, 0.02, 0.03]).evident is None
    assert launch_drift([0.01]) is None


@given(st.lists(st.floats(1e-6, 1e3), min_size=10, max_size=60), st.floats(1e-3, 1e3))
def test_the_unit_of_time_changes_nothing_and_reversing_time_changes_the_sign(values: list[float], unit: float) -> None:
    assert log_change(values[::-1]) == pytest.approx(-log_change(values), abs=1e-9)
    assert trend(values[::-1]) == pytest.approx(-trend(values), rel=1e-6, abs=1e-9)
    assert log_change([value * unit for value in values]) == pytest.approx(log_change(values), abs=1e-9)


def test_a_drift_far_below_the_noise_is_found_if_launches_agree() -> None:
    rng = random.Random(7)
    changes = [log_change(blocks(rng, 100, drift=0.03, sigma=0.03)) for _ in range(20)]
    assert sum(launch_drift(blocks(rng, 100, drift=0.03, sigma=0.03)).evident for _ in range(100)) < 30
    assert common_drift(changes) == pytest.approx(0.015, abs=0.005)


def test_launches_without_a_drift_agree_on_one_less_than_once_in_a_hundred_series_of_looks() -> None:
    rng = random.Random(8)
    accused = 0
    for _ in range(SERIES):
        changes = [rng.gauss(0, 0.01) for _ in range(20)]
        accused += any(common_drift(changes[:count]) is not None for count in range(5, 21))
    assert accused / SERIES <= 0.01


def test_four_launches_cannot_agree() -> None:
    assert common_drift([0.1] * 4) is None
    assert common_drift([0.1] * 5) == pytest.approx(0.1)
