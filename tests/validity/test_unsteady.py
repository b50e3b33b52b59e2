# ruff: noqa: S311 - samples, no secrets
"""The drift of blocks, provoked in launches; and the launches that it must let pass."""

import random
from collections.abc import Callable, Sequence

import pytest

from accelbench.api.result import Check
from accelbench.launch.record import Block, LaunchRecord
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from judge.launches import BASELINE, VARIANT, a_case, a_launch

Course = Callable[[float], float]
"""How much slower a block is, by its place in the launch from 0 to 1."""


def launch_of(
    rng: random.Random, number: int, course: Course, *, variant: str = VARIANT, blocks: int = 50, sigma: float = 0.01
) -> LaunchRecord:
    seconds = [0.02 * course(index / blocks) * rng.gauss(1, sigma) for index in range(blocks)]
    return a_launch(variant, number).model_copy(
        update={"blocks": tuple(Block(units=2, seconds=value) for value in seconds)}
    )


def still(_place: float) -> float:
    return 1.0


def heating(place: float) -> float:
    return 1 + 0.06 * place


def settling(place: float) -> float:
    return 1.06 - 0.06 * place


def unsteady(launches: Sequence[LaunchRecord], variant: str = VARIANT) -> Check:
    certificate = certify(Evidence(case=a_case(), launches=tuple(launches)))
    return next(each for each in certificate.checks if each.name == "unsteady" and each.variant in {variant, None})


@pytest.mark.parametrize(("course", "word"), [(heating, "slower"), (settling, "faster")])
def test_a_variant_whose_launches_all_drift_is_unsteady(course: Course, word: str) -> None:
    rng = random.Random(1)
    check = unsteady([launch_of(rng, number, course) for number in range(1, 6)])
    assert check.outcome == "failed"
    assert word in check.reading


def test_two_launches_that_drift_are_enough() -> None:
    rng = random.Random(2)
    check = unsteady([launch_of(rng, number, heating) for number in (1, 2)])
    assert (check.outcome, check.reading[:42]) == ("failed", "unsteady: 2 of 2 launches drift, the worst")


def test_a_drift_below_the_noise_of_blocks_is_found_if_launches_agree() -> None:
    rng = random.Random(3)
    launches = [launch_of(rng, number, heating, sigma=0.05, blocks=100) for number in range(1, 16)]
    assert "all 15 launches alike" in unsteady(launches).reading


def test_the_other_variant_stays_steady() -> None:
    rng = random.Random(4)
    launches = [launch_of(rng, number, heating) for number in range(1, 6)]
    launches += [launch_of(rng, number, still, variant=BASELINE) for number in range(1, 6)]
    assert (unsteady(launches, BASELINE).outcome, unsteady(launches).outcome) == ("passed", "failed")


def test_one_launch_that_drifts_is_noise_covered_by_the_interval() -> None:
    rng = random.Random(5)
    launches = [launch_of(rng, number, heating if number == 3 else still) for number in range(1, 6)]
    check = unsteady(launches)
    assert (check.outcome, check.reading) == ("passed", "steady; 1 of 5 drift")


def test_a_significant_but_small_drift_passes() -> None:
    rng = random.Random(6)
    launches = [launch_of(rng, number, lambda place: 1 + 0.01 * place, sigma=0.0005) for number in range(1, 6)]
    assert unsteady(launches).outcome == "passed"


def test_slow_blocks_at_the_beginning_pass() -> None:
    rng = random.Random(7)
    launches = [launch_of(rng, number, lambda place: 3.0 if place < 0.1 else 1.0) for number in range(1, 6)]
    assert unsteady(launches).outcome == "passed"


@pytest.mark.parametrize(("count", "blocks"), [(1, 50), (3, 3)])
def test_one_launch_or_few_blocks_cannot_show_a_drift(count: int, blocks: int) -> None:
    rng = random.Random(8)
    launches = [launch_of(rng, number, heating, blocks=blocks) for number in range(1, count + 1)]
    assert unsteady(launches).outcome == "untested"


@pytest.mark.slow
def test_fewer_than_one_in_a_hundred_steady_variants_fail_although_tested_after_every_round() -> None:
    rng = random.Random(9)
    accused = 0
    for _ in range(200):
        launches = [launch_of(rng, number, still, blocks=20) for number in range(1, 11)]
        accused += any(unsteady(launches[:count]).outcome == "failed" for count in range(1, 11))
    assert accused <= 2
