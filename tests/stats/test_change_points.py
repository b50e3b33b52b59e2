# ruff: noqa: S311 - samples, no secrets
import math
import random

import pytest

from accelbench.stats.change_points import find_change_points

SERIES = 200


def results(rng: random.Random, *levels: tuple[int, float], memory: float = 0.0, sigma: float = 0.01) -> list[float]:
    """So many results at each level, in order of time, their noise remembering so much of the result before."""
    noise, values = 0.0, []
    for count, level in levels:
        for _ in range(count):
            noise = memory * noise + math.sqrt(1 - memory**2) * rng.gauss(0, sigma)
            values.append(level * math.exp(noise))
    return values


def test_a_regression_is_found_where_it_happened() -> None:
    (step,) = find_change_points(results(random.Random(1), (30, 0.010), (20, 0.0105)))
    assert abs(step.index - 30) <= 1
    assert step.ratio == pytest.approx(1.05, abs=0.01)


def test_a_regression_and_its_repair_are_two_steps() -> None:
    steps = find_change_points(results(random.Random(2), (20, 0.010), (20, 0.011), (20, 0.010)))
    assert [step.index for step in steps] == [20, 40]
    assert [step.ratio for step in steps] == pytest.approx([1.1, 1 / 1.1], abs=0.02)


def test_a_series_without_noise_has_its_step() -> None:
    (step,) = find_change_points([1.0] * 10 + [2.0] * 10)
    assert (step.index, step.ratio) == (10, pytest.approx(2))


def test_a_single_odd_result_is_no_step() -> None:
    values = results(random.Random(3), (40, 0.01))
    values[17] *= 1.5
    assert find_change_points(values) == ()


def test_a_step_too_small_to_matter_is_not_shown() -> None:
    values = results(random.Random(4), (50, 0.010), (50, 0.0105))
    assert find_change_points(values, minimum_change=0.02)
    assert not find_change_points(values, minimum_change=0.10)


@pytest.mark.parametrize(("count", "memory"), [(10, 0.0), (30, 0.0), (100, 0.0), (50, 0.5), (100, 0.5)])
def test_a_series_without_a_step_gets_one_at_most_twice_in_a_hundred(count: int, memory: float) -> None:
    rng = random.Random(f"{count}/{memory}")
    alarms = sum(bool(find_change_points(results(rng, (count, 0.01), memory=memory))) for _ in range(SERIES)) / SERIES
    assert alarms <= 0.02 + 2 * math.sqrt(0.02 * 0.98 / SERIES)


@pytest.mark.parametrize("values", [[], [1.0] * 9, [1.0] * 4 + [9.0] * 5, [1.0] * 30])
def test_few_or_equal_results_have_no_steps(values: list[float]) -> None:
    assert find_change_points(values) == ()
