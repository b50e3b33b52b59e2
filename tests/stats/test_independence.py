# ruff: noqa: S311 - samples, no secrets
import random

import pytest

from accelbench.stats.independence import correlation_limit, lag_one_correlation


def series(rng: random.Random, count: int, memory: float) -> list[float]:
    values = [rng.gauss(0, 1)]
    for _ in range(count - 1):
        values.append(memory * values[-1] + rng.gauss(0, (1 - memory**2) ** 0.5))
    return values


def alarms(count: int, memory: float) -> float:
    rng = random.Random(7)
    return sum(lag_one_correlation(series(rng, count, memory)) > correlation_limit(count) for _ in range(2000)) / 2000


@pytest.mark.parametrize("count", [20, 50])
def test_independent_rounds_are_accused_at_most_once_in_a_hundred(count: int) -> None:
    assert alarms(count, 0.0) <= 0.017


def test_rounds_that_remember_are_found_more_often_than_not() -> None:
    assert alarms(20, 0.7) > 0.6


def test_correlations_of_known_series() -> None:
    assert lag_one_correlation([1.0, -1.0, 1.0, -1.0]) == pytest.approx(-0.75)
    assert lag_one_correlation([1.0, 2.0, 3.0, 4.0]) == pytest.approx(0.25)
    assert lag_one_correlation([2.0, 2.0, 2.0]) == 0
