"""The order of launches: every variant once a round, random, and the same again from the same seed."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from accelbench.plan.round_order import round_order

VARIANTS = ("jax/jit", "pytorch/compile", "pytorch/eager")


@given(st.integers(0, 2**31 - 1), st.text(), st.integers(1, 1000))
def test_a_round_launches_every_variant_once_and_repeats_from_its_seed(seed: int, case: str, number: int) -> None:
    order = round_order(VARIANTS, seed=seed, case=case, round_number=number)
    assert sorted(order) == sorted(VARIANTS)
    assert order == round_order(VARIANTS, seed=seed, case=case, round_number=number)


def test_every_order_is_equally_likely() -> None:
    rounds = 6000
    counts = Counter(
        round_order(VARIANTS, seed=0, case="all", round_number=number) for number in range(1, 2 * rounds, 2)
    )
    assert len(counts) == 6
    expected = rounds / 6
    chi_squared = sum((count - expected) ** 2 / expected for count in counts.values())
    assert chi_squared < 20.5  # 0.999 quantile at 5 degrees of freedom; the seed is fixed


@given(st.integers(0, 2**31 - 1), st.integers(1, 500))
def test_every_second_round_is_the_one_before_it_backwards(seed: int, pair: int) -> None:
    first, second = (round_order(VARIANTS, seed=seed, case="all", round_number=2 * pair - 1 + turn) for turn in (0, 1))
    assert second == tuple(reversed(first))


def test_cases_of_one_run_have_orders_of_their_own() -> None:
    first = [round_order(VARIANTS, seed=0, case="a", round_number=number) for number in range(20)]
    second = [round_order(VARIANTS, seed=0, case="b", round_number=number) for number in range(20)]
    assert first != second
