# ruff: noqa: S311 - samples, no secrets
import math
import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accelbench.stats.interval import student_interval
from accelbench.stats.stopping import StoppingRule

EXPERIMENTS = 800
Draw = Callable[[random.Random], float]


def a_rule(
    least: int = 5, most: int = 20, *, target: float = 0.01, confidence: float = 0.95, comparisons: int = 1
) -> StoppingRule:
    return StoppingRule(
        rounds_min=least, rounds_max=most, target=target, confidence=confidence, comparisons=comparisons
    )


def coverage(draw: Draw, rule: StoppingRule, rng: random.Random, *, alpha: float | None = None) -> float:
    """Share of experiments whose interval holds 0, looking after every round, through the judge's own functions."""
    held = 0
    for _ in range(EXPERIMENTS):
        log_ratios = []
        while True:
            log_ratios.append(draw(rng))
            if len(log_ratios) < rule.rounds_min:
                continue
            interval = student_interval(log_ratios, alpha or rule.nominal_alpha)
            enough = interval is not None and rule.should_stop(
                rounds=len(log_ratios), relative_half_width=interval.relative_half_width
            )
            if enough or len(log_ratios) == rule.rounds_max:
                break
        held += interval is None or abs(interval.log_estimate) <= interval.log_half_width
    return held / EXPERIMENTS


def three_deviations_below(share: float) -> float:
    return share - 3 * math.sqrt(share * (1 - share) / EXPERIMENTS)


def normal(rng: random.Random) -> float:
    return rng.gauss(0, 0.01)


def heavy(rng: random.Random) -> float:
    # Student's t with 2.5 degrees of freedom: a normal over the root of a mean square.
    return 0.01 * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.25, 2) / 2.5)


def drifting(rng: random.Random) -> float:
    return rng.gauss(0, 0.01 * math.sqrt(2)) + 0.01 * rng.choice([-1, 1])


def without_tails(rng: random.Random) -> float:
    return rng.uniform(-0.01, 0.01)


def rarely_slow_on_both_sides(rng: random.Random) -> float:
    slow, slow_too = (0.4 * (rng.random() < 0.05) for _ in range(2))
    return rng.gauss(0, 0.01) + slow - slow_too


@pytest.mark.parametrize(
    "draw", [normal, heavy, drifting, without_tails, rarely_slow_on_both_sides], ids=lambda draw: draw.__name__
)
@pytest.mark.parametrize(("least", "most", "target"), [(3, 10, 0.0075), (5, 20, 0.006)])
def test_looking_after_every_round_still_covers_95_percent(draw: Draw, least: int, most: int, target: float) -> None:
    share = coverage(draw, a_rule(least, most, target=target), random.Random(20260101))
    assert share >= three_deviations_below(0.95)


def test_without_the_correction_it_does_not() -> None:
    rule = a_rule(3, 20, target=0.0055)
    share = coverage(normal, rule, random.Random(1), alpha=rule.alpha)
    assert share < three_deviations_below(0.95)


def test_the_correction_depends_only_on_looks_that_are_taken() -> None:
    assert a_rule(8, 8).nominal_alpha == a_rule(8, 8).alpha == pytest.approx(0.05)


def test_the_correction_for_five_rounds_is_that_of_the_simulation() -> None:
    assert a_rule(5).nominal_alpha == pytest.approx(0.0244, abs=0.0001)


@given(st.integers(2, 49), st.floats(0.5, 0.999), st.integers(1, 4000))
def test_the_nominal_alpha_lies_below_the_alpha_and_grows_with_the_fewest_rounds(
    least: int, confidence: float, comparisons: int
) -> None:
    rule = a_rule(least, 50, confidence=confidence, comparisons=comparisons)
    later = a_rule(least + 1, 50, confidence=confidence, comparisons=comparisons)
    assert 0 < rule.nominal_alpha < rule.alpha
    assert rule.nominal_alpha < later.nominal_alpha


def test_comparisons_share_the_error() -> None:
    assert a_rule(comparisons=10).alpha == pytest.approx(0.005)


@pytest.mark.parametrize(
    ("rounds", "half_width", "met"), [(4, 0.001, False), (5, 0.0101, False), (5, 0.01, True), (20, 0.02, False)]
)
def test_the_target_is_met_with_enough_rounds_and_a_narrow_interval(rounds: int, half_width: float, met: bool) -> None:
    assert a_rule(5).should_stop(rounds=rounds, relative_half_width=half_width) is met
