"""The authors of the articles, and mistakes in their code apart from the claims."""

from pathlib import Path

import pytest

from accelbench.claims import articles
from accelbench.claims.ledger import InvalidLedgerError, load

ROWS = Path(__file__).parents[2] / "examples" / "claims"
ABOUT = articles.load(ROWS)


def test_every_quoted_article_is_stored_once() -> None:
    names = [each.name for each in ABOUT.articles]
    assert sorted(set(names)) == names
    assert {claim.article for claim in load(ROWS)} | {each.article for each in ABOUT.mistakes} <= set(names)


@pytest.mark.parametrize(
    ("text", "expected_text"), [(None, "No such file"), ("chosen: [", "articles.yaml"), ("chosen: x", "Field")]
)
def test_invalid_articles_are_refused_with_the_place(text: str | None, expected_text: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / articles.ARTICLES).write_text(text)
    with pytest.raises(InvalidLedgerError, match=expected_text):
        articles.load(tmp_path)
