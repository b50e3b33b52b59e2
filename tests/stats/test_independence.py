# ruff: noqa: S311 - samples, no secrets
import random

import pytest

from accelbench.stats.independence import correlation_limit, effective_size, lag_one_correlation


def series(rng: random.Random, count: int, memory: float) -> list[float]:
    values = [rng.gauss(0, 1)]
    for _ in range(count - 1):
        values.append(memory * values[-1] + rng.gauss(0, (1 - memory**2) ** 0.5))
    return values


def alarms(count: int, memory: float) -> float:
    rng = random.Random(7)
    return sum(lag_one_correlation(series(rng, count, memory)) > correlation_limit(count) for _ in range(2000)) / 2000


@pytest.mark.parametrize("count", [20, 50])
def test_independent_rounds_fail_at_most_once_in_a_hundred(count: int) -> None:
    assert alarms(count, 0.0) <= 0.017


def test_dependent_rounds_are_detected_more_often_than_not() -> None:
    assert alarms(20, 0.7) > 0.6


def test_correlations_of_known_series() -> None:
    assert lag_one_correlation([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)
    assert lag_one_correlation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.25)
    assert lag_one_correlation([2.0, 2.0, 2.0]) == 0


@pytest.mark.parametrize(("memory", "worth"), [(0.0, 200), (0.5, 67), (0.8, 22)])
def test_an_autocorrelated_series_is_worth_fewer_independent_values(memory: float, worth: float) -> None:
    rng = random.Random(9)
    sizes = sorted(effective_size(series(rng, 200, memory)) for _ in range(200))
    assert sizes[100] == pytest.approx(worth, rel=0.25)


@pytest.mark.parametrize("values", [[1.0], [3.0] * 7, [1.0, 2.0] * 10])
def test_a_series_is_never_worth_more_than_its_length(values: list[float]) -> None:
    assert effective_size(values) == len(values)
