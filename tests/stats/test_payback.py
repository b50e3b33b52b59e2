# ruff: noqa: S311 - samples, no secrets
import math
import random
import re
from dataclasses import replace

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from accelbench.stats.payback import LaunchCost, PaybackEstimate, estimate_payback, payback_sentence


def paired(baseline: tuple[float, float], variant: tuple[float, float], count: int = 6) -> PaybackEstimate:
    """Launches without noise."""
    found = estimate_payback([LaunchCost(*baseline)] * count, [LaunchCost(*variant)] * count, 0.05)
    assert found is not None
    return found


def sentence_of(found: PaybackEstimate, unit: str = "step") -> str:
    return payback_sentence(found, "jax/jit", unit)


def test_a_dearer_first_call_pays_back_after_its_cost_over_what_a_step_saves() -> None:
    found = paired((0.0, 0.02), (1.0, 0.01))
    assert (found.answer, found.steps) == ("after", pytest.approx(100))
    assert (found.lower, found.upper) == (pytest.approx(100), pytest.approx(100))
    assert sentence_of(found) == "The first call of jax/jit takes 1 s longer and pays back after 100 steps."


def test_one_step_can_be_enough() -> None:
    found = paired((0.0, 0.2), (0.06, 0.1))
    assert (
        sentence_of(found, "product") == "The first call of jax/jit takes 0.06 s longer and pays back after 1 product."
    )


def test_a_variant_that_is_slower_and_dearer_never_pays_back() -> None:
    found = paired((0.0, 0.01), (14.1, 0.011))
    assert (found.answer, found.steps, found.lower, found.upper) == ("never", None, None, None)
    assert (
        sentence_of(found)
        == "The first call of jax/jit takes 14.1 s longer and never pays back: later calls are slower too."
    )


def test_a_variant_that_is_faster_and_cheaper_is_ahead_at_once() -> None:
    found = paired((2.0, 0.02), (1.5, 0.01))
    assert (found.answer, found.steps, found.lower) == ("at-once", None, None)
    assert sentence_of(found) == "The first call of jax/jit takes 0.5 s less: it is ahead from the first step."


def test_a_cheaper_first_call_is_used_up_by_slower_steps() -> None:
    found = paired((2.0, 0.01), (1.0, 0.02))
    assert (found.answer, found.steps) == ("until", pytest.approx(100))
    assert sentence_of(found) == "The first call of jax/jit takes 1 s less: it is ahead until 100 steps."


def test_compiling_of_the_baseline_is_not_charged_twice() -> None:
    found = paired((10.0, 0.02), (12.0, 0.01))
    assert sentence_of(found) == "The first call of jax/jit takes 2 s longer and pays back after 200 steps."


def test_indistinguishable_steps_leave_the_number_without_an_upper_bound() -> None:
    steps = [0.010, 0.0101, 0.0099, 0.0102, 0.0098]
    baseline = [LaunchCost(0.0, 0.01001)] * 5
    found = estimate_payback(baseline, [LaunchCost(1.0, step) for step in steps], 0.05)
    assert (found.answer, found.upper) == ("after", None)
    assert 1000 < found.lower < 100_000
    assert sentence_of(found).endswith("steps at the earliest, if ever.")


@pytest.mark.parametrize("centre", [0.00999, 0.01001], ids=["maybe slower", "maybe faster"])
def test_the_answer_does_not_claim_slower_later_calls_if_that_is_unknown(centre: float) -> None:
    baseline = [LaunchCost(0.0, step) for step in (0.010, 0.0101, 0.0099, 0.0102, 0.0098)]
    found = estimate_payback(
        [replace(each, step=each.step + centre - 0.01) for each in baseline],
        [LaunchCost(2.5, step) for step in (0.0102, 0.0098, 0.0101, 0.0099, 0.010)],
        0.05,
    )
    assert found.answer == ("never" if centre < 0.01 else "after")
    assert "slower" not in sentence_of(found)
    assert sentence_of(found).endswith("at the earliest, if ever.")


def test_first_calls_of_equal_cost_have_no_sentence() -> None:
    assert sentence_of(paired((0.5, 0.02), (0.5001, 0.01))) == ""


def test_a_large_number_of_steps_has_only_the_digits_that_are_known() -> None:
    rng = random.Random(1)
    baseline = [LaunchCost(0.0, 0.02 * rng.gauss(1, 0.003)) for _ in range(8)]
    variant = [LaunchCost(rng.gauss(14.1, 0.1), 0.019) for _ in range(8)]
    sentence = sentence_of(estimate_payback(baseline, variant, 0.05))
    begins = r"The first call of jax/jit takes 14\.1 s longer and pays back after "
    assert re.fullmatch(begins + r"1\d,\d00 steps \(1\d,\d00 to 1\d,\d00\)\.", sentence)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_pairs_answer_nothing(count: int) -> None:
    assert estimate_payback([LaunchCost(0, 2)] * count, [LaunchCost(1, 1)] * count, 0.05) is None


@pytest.mark.parametrize(("cost", "saved"), [(1.0, 0.01), (0.05, 0.01), (1.0, 0.0003)])
def test_the_interval_misses_as_often_as_its_level_allows(cost: float, saved: float) -> None:
    rng = random.Random(f"{cost}/{saved}")
    held, experiments = 0, 1500
    for _ in range(experiments):
        baseline = [LaunchCost(rng.gauss(0, 0.02), 0.02 + rng.gauss(0, 0.0004)) for _ in range(6)]
        variant = [LaunchCost(cost + rng.gauss(0, 0.02), 0.02 - saved + rng.gauss(0, 0.0004)) for _ in range(6)]
        found = estimate_payback(baseline, variant, 0.05)
        held += found.lower is not None and found.lower <= cost / saved <= (found.upper or math.inf)
    assert held / experiments >= 0.95 - 3 * math.sqrt(0.05 * 0.95 / experiments)


costs = st.builds(LaunchCost, first_call=st.floats(-1, 100), step=st.floats(1e-6, 1.0))
pairs = st.lists(st.tuples(costs, costs), min_size=2, max_size=12)


@given(pairs)
@example([(LaunchCost(0.0, 0.5), LaunchCost(1.42e-164, 0.25)), (LaunchCost(0.0, 0.53), LaunchCost(0.0, 0.25))])
def test_the_estimate_lies_within_the_interval(rounds: list[tuple[LaunchCost, LaunchCost]]) -> None:
    baseline, variant = zip(*rounds, strict=True)
    found = estimate_payback(baseline, variant, 0.05)
    if found.steps is not None and found.steps < 1e9:
        assert found.lower is not None
        assert found.lower <= found.steps * (1 + 1e-6)
        assert found.upper is None or found.steps <= found.upper * (1 + 1e-6)


@given(pairs)
def test_swapping_the_sides_turns_after_into_until(rounds: list[tuple[LaunchCost, LaunchCost]]) -> None:
    baseline, variant = zip(*rounds, strict=True)
    there, back = estimate_payback(baseline, variant, 0.05), estimate_payback(variant, baseline, 0.05)
    assume(there.extra_seconds != 0)
    opposite = {"after": "until", "until": "after", "at-once": "never", "never": "at-once"}
    assert back.answer == opposite[there.answer]
    assert back.steps == there.steps
