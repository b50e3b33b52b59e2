# ruff: noqa: S311 - samples, no secrets
import random
from typing import Any

import pytest

from accelbench.stats.gap import find_gap


def launches(rng: random.Random, count: int, *, sigma: float = 0.01) -> list[float]:
    return [0.01 * (1 + rng.gauss(0, sigma)) for _ in range(count)]


@pytest.mark.parametrize("count", [5, 8, 12, 20, 50])
def test_normal_launches_are_named_once_in_a_hundred(count: int) -> None:
    rng = random.Random(count)
    alarms = sum(find_gap(launches(rng, count), 0) is not None for _ in range(3000))
    assert alarms / 3000 <= 0.02


def test_a_rare_slow_launch_is_named() -> None:
    gap = find_gap([0.010, 0.0101, 0.0099, 0.01, 0.0102, 0.0098, 0.01, 0.014], 0.01)
    assert (gap.launches_below, gap.launches_above) == (7, 1)
    assert gap.sentence("jax/jit") == (
        "1 of 8 launches of jax/jit was slow, by a factor of 1.37 or more: the interval may be too narrow."
    )


def test_a_rare_quick_launch_is_named() -> None:
    assert "1 of 6 launches of x was quick" in find_gap([1.0, 1.0, 1.01, 0.99, 1.0, 0.5], 0.01).sentence("x")


def test_two_humps_are_named() -> None:
    gap = find_gap([0.010, 0.0101, 0.0102, 0.0140, 0.0141, 0.0139], 0.01)
    assert gap.sentence("jax/jit") == (
        "Launches of jax/jit come in two groups, 1.36 times apart: the interval may be too narrow."
    )


def test_a_gap_too_small_to_matter_is_not_named() -> None:
    assert find_gap([1.0, 1.0001, 1.0002, 1.004, 1.0041, 1.0042], 0.01) is None


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0, 2.0, 2.0], [1.0] * 10])
def test_few_or_equal_launches_have_no_gap(values: Any) -> None:
    assert find_gap(values, 0.01) is None
