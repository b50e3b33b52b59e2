# ruff: noqa: S311 - samples, no secrets
import math
import random

import pytest

from accelbench.stats.spread import between_launch_share


def launches(rng: random.Random, *, between: float, within: float, count: int = 40) -> list[list[float]]:
    found = []
    for number in range(count):
        level = rng.gauss(0, between)
        found.append([0.01 * math.exp(level + rng.gauss(0, within)) for _ in range(10 + number % 7)])
    return found


@pytest.mark.parametrize(("between", "within", "share"), [(0.03, 0.01, 0.9), (0.01, 0.01, 0.5), (0.01, 0.03, 0.1)])
def test_the_estimated_share_is_the_simulated_one(between: float, within: float, share: float) -> None:
    rng = random.Random(f"{between}/{within}")
    found = [between_launch_share(launches(rng, between=between, within=within)) for _ in range(30)]
    assert math.fsum(found) / 30 == pytest.approx(share, abs=0.04)


def test_launches_that_differ_only_by_their_blocks_have_almost_no_share() -> None:
    assert between_launch_share(launches(random.Random(1), between=0.0, within=0.02)) < 0.05


def test_launches_without_noise_inside_have_the_whole_share() -> None:
    assert between_launch_share([[1.0, 1.0], [2.0, 2.0]]) == 1.0


@pytest.mark.parametrize("few", [[], [[1.0, 2.0]], [[1.0], [2.0]], [[1.0, 1.0], [1.0, 1.0]]])
def test_the_share_is_unknown_if_its_parts_cannot_be_distinguished(few: list[list[float]]) -> None:
    assert between_launch_share(few) is None
