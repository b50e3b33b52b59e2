"""The speedups between the eight XOR programs, as stored, against those of the article."""

import json
from pathlib import Path

import pytest

from accelbench.api.result import Result
from accelbench.claims.ledger import load

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "claims" / "cpu"
EPOCHS = 10_000
ARTICLE = {
    "pytorch/nn": 4.154,
    "pytorch/no-optimizer": 3.806,
    "pytorch/no-nn": 3.504,
    "jax/op-by-op": 104.540,
    "jax/jit-pieces": 27.663,
    "jax/jit-step": 2.432,
    "pytorch/compile": 6.688,
}
"""Seconds of first-looking-into-jax for all epochs."""


def stored(row: int) -> Result:
    (file,) = RESULTS.glob(f"{row}-*/all.result.json")
    return Result.model_validate(json.loads(file.read_text()))


def test_the_ledger_holds_them_to_the_articles_own_ratios() -> None:
    asked = [training for claim in load(RESULTS.parents[3] / "examples" / "claims") for training in claim.trainings]
    assert {each.variant for each in asked} == ARTICLE.keys() - {"pytorch/nn"}
    for each in asked:
        assert float(each.article) == pytest.approx(ARTICLE[each.over] / ARTICLE[each.variant], rel=1e-3)
        assert each.units == EPOCHS


@pytest.mark.parametrize("row", [29, 30, 31, 32, 33, 34, 35])
def test_a_speedup_is_within_a_factor_of_two_of_the_articles(row: int) -> None:
    compared = {
        comparison.variant: float(comparison.speedup or 0)
        / (ARTICLE[comparison.baseline] / ARTICLE[comparison.variant])
        for comparison in stored(row).comparisons
        if comparison.variant in ARTICLE
    }
    assert compared
    assert {variant: ratio for variant, ratio in compared.items() if not 0.5 <= ratio <= 2} == {}
