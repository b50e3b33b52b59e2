"""Claims are in their article's own words, whole, and in the right article."""

from pathlib import Path

import pytest

from accelbench.claims.ledger import LEFT_OUT, Claim, load
from claims.quotes import is_whole, passages, stands_in

CLAIMS = load(Path(__file__).parents[2] / "examples" / "claims")
PASSAGES = passages()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"row {claim.row}")
def test_a_quote_is_in_its_article(claim: Claim) -> None:
    missing = [part for part in claim.quote.split(LEFT_OUT) if not stands_in(part, PASSAGES[claim.article])]
    assert missing == [], f"not in {claim.article}, or not in its passages in tests/claims/quotes.yaml"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"row {claim.row}")
def test_no_part_of_a_quote_ends_before_its_sentence_does(claim: Claim) -> None:
    cut = [part for part in claim.quote.split(LEFT_OUT) if not is_whole(part, PASSAGES[claim.article])]
    assert cut == []


def test_a_quote_without_its_qualification_is_incomplete() -> None:
    first, clause, others = (
        "JAX achieves 2-3x speedups via XLA compilation and functional purity",
        ", but only",
        " when it fits.",
    )
    assert not is_whole(first, [first + clause + others])
    assert not is_whole(first + clause, [first + clause + others])
    assert is_whole(first + clause + others, [first + clause + others + " More"])
    assert is_whole(first, [first + ": x = 1"])


def test_a_quote_of_another_article_or_in_other_words_does_not_match() -> None:
    said = "shapes that depend on array values cause recompilation".capitalize()
    assert stands_in(said, PASSAGES["A3"])
    assert not stands_in(said, PASSAGES["A2"])
    assert not stands_in(said.replace("cause", "may cause"), PASSAGES["A3"])


def test_typography_makes_no_difference() -> None:
    typeset = (
        "Yes, it\N{RIGHT SINGLE QUOTATION MARK}s\n\N{LEFT DOUBLE QUOTATION MARK}fast\N{RIGHT DOUBLE QUOTATION MARK}"
    )
    assert stands_in('it\'s "fast"', [typeset])


def test_only_short_passages_are_kept() -> None:
    lengths = [len(text) for texts in PASSAGES.values() for text in texts]
    assert max(lengths) < 400
    assert sum(lengths) < 20_000
