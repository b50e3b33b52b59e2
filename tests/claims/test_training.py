"""A whole training beside another, compiling included, held against what an article measured."""

import math
from typing import Literal

import pytest

from accelbench.api.result import LaunchSummary, PhaseTime, Result
from accelbench.claims import training
from accelbench.claims.ledger import Training
from report import sample

EAGER, COMPILE = "pytorch/eager", "pytorch/compile"


def a_result(*, compiling: str, lower: str, upper: str, rounds: int = 8) -> Result:
    """An epoch takes 2 ms in both; compiling takes so many seconds in one, and nothing in the other."""
    phase = PhaseTime(phase="compile", median_seconds=compiling, min_seconds=compiling, max_seconds=compiling)
    launches = tuple(
        LaunchSummary(round=number, seconds="0.002", blocks=20, units_per_block=1) for number in range(1, rounds + 1)
    )
    variants = (
        sample.variant(EAGER, "0.002").model_copy(update={"phases": (), "launches": launches}),
        sample.variant(COMPILE, "0.002").model_copy(update={"phases": (phase,), "launches": launches}),
    )
    comparison = sample.comparison(COMPILE, "equivalent", "1", lower, upper, EAGER)
    return sample.result(
        case=sample.case((EAGER, COMPILE)), variants=variants, comparisons=(comparison,), rounds=rounds
    )


def asked(article: str, claims: Literal["figure", "direction"] = "figure") -> Training:
    return Training(variant=COMPILE, over=EAGER, units=10_000, article=article, claims=claims)


def test_compiling_counts_as_in_the_article() -> None:
    """20 s of epochs and 20 s of compiling are twice as long."""
    found = training.evaluate(asked("0.5"), a_result(compiling="20", lower="0.99", upper="1.01"))
    assert found.outcome == "met"
    assert "(article: 2.0 times as slow), 1.50 to 3.0 times as slow as pytorch/eager: met, 2.0" in found.sentence
    assert training.evaluate(asked("1.2"), a_result(compiling="20", lower="0.99", upper="1.01")).outcome == "not-met"


@pytest.mark.parametrize(
    ("article", "bounds"),
    [(1.5, (1.25, 2)), (3.0, (2, 5)), (0.8, (1 / 1.5, 1 / 1.125)), (0.1, (1 / 19, 1 / 5.5))],
)
def test_the_bounds_are_half_and_twice_the_advantage_of_the_article(
    article: float, bounds: tuple[float, float]
) -> None:
    assert training.bounds(asked(str(article))) == pytest.approx(bounds)


@pytest.mark.parametrize(("article", "bounds"), [(1.5, (1.25, math.inf)), (0.8, (0, 1 / 1.125))])
def test_without_a_factor_in_the_article_a_larger_advantage_does_not_contradict(
    article: float, bounds: tuple[float, float]
) -> None:
    assert training.bounds(asked(str(article), "direction")) == pytest.approx(bounds)
    much_slower = a_result(compiling="200", lower="0.99", upper="1.01")
    assert training.evaluate(asked("0.8"), much_slower).outcome == "not-met"
    found = training.evaluate(asked("0.8", "direction"), much_slower)
    assert found.outcome == "met"
    assert (
        "(article: 1.25 times as slow), at least 1.12 times as slow as pytorch/eager: met, 11 times" in found.sentence
    )


@pytest.mark.parametrize(("article", "claims", "excluded"), [("0.5", "figure", False), ("0.45", "figure", True)])
def test_an_interval_without_the_articles_figure_is_noted(
    article: str, claims: Literal["figure", "direction"], excluded: bool
) -> None:
    found = training.evaluate(asked(article, claims), a_result(compiling="20", lower="0.99", upper="1.01"))
    assert (found.outcome, found.excludes_figure) == ("met", excluded)


def test_a_claim_about_the_direction_has_no_figure_to_exclude() -> None:
    found = training.evaluate(asked("0.8", "direction"), a_result(compiling="20", lower="0.99", upper="1.01"))
    assert (found.outcome, found.excludes_figure) == ("met", False)


def test_a_ratio_that_may_lie_on_either_side_is_undecided() -> None:
    assert training.evaluate(asked("1.2"), a_result(compiling="0", lower="0.9", upper="1.3")).outcome == "undecided"


def test_a_missing_comparison_or_one_with_too_few_rounds_is_undecided() -> None:
    result = a_result(compiling="20", lower="0.99", upper="1.01")
    alone = training.evaluate(asked("0.5"), result.model_copy(update={"comparisons": ()}))
    assert (alone.outcome, alone.is_valid) == ("undecided", False)
    short = training.evaluate(asked("0.5"), a_result(compiling="20", lower="0.99", upper="1.01", rounds=2))
    assert (short.outcome, short.is_valid) == ("undecided", False)
