"""The articles: who wrote them, how claims were chosen, and what is wrong in their code beside the claims."""

from datetime import date
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ValidationError

from accelbench.claims.ledger import InvalidLedgerError
from accelbench.document import Document

ARTICLES = "articles.yaml"
"""Beside the ledger."""
ArticleName = Literal["A0", "A1", "A2", "A3", "A4"]


class Article(Document):
    """As far as it says who wrote it, and when."""

    name: ArticleName
    title: str
    author: str = ""
    published: date | None = None
    link: str = ""


class Mistake(Document):
    """Of an article, that no row is about."""

    article: ArticleName
    said: str
    shown: str


class Articles(Document):
    """All of them."""

    chosen: str
    """How claims were."""
    articles: tuple[Article, ...]
    mistakes: tuple[Mistake, ...]


def load(directory: Path) -> Articles:
    """What stands in the directory of the ledger; raises InvalidLedgerError."""
    file = directory / ARTICLES
    try:
        return Articles.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
