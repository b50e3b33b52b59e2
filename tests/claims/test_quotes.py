"""Claims are in their article's own words, whole, and in the right article."""

from pathlib import Path

import pytest

from accelbench.claims.ledger import LEFT_OUT, Claim, load
from claims.quotes import passages, stands_in

CLAIMS = load(Path(__file__).parents[2] / "examples" / "claims")
PASSAGES = passages()


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: f"row {claim.row}")
def test_a_quote_stands_in_its_article(claim: Claim) -> None:
    missing = [part for part in claim.quote.split(LEFT_OUT) if not stands_in(part, PASSAGES[claim.article])]
    assert missing == [], f"not in {claim.article}, or not in its passages in tests/claims/quotes.yaml"


def test_a_quote_of_another_article_or_in_other_words_does_not() -> None:
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
    assert sum(lengths) < 15_000
