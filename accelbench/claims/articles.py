"""Read the articles: authors, how claims were chosen, and mistakes in the articles' code that no claim covers."""

from datetime import date
from pathlib import Path
from typing import Literal

import yaml
from pydantic import ValidationError

from accelbench.claims.ledger import InvalidLedgerError
from accelbench.document import Document

ARTICLES = "articles.yaml"
"""File name, next to the ledger."""
ArticleName = Literal["A0", "A1", "A2", "A3", "A4"]


class Article(Document):
    """Describe an article. Its author or date is empty if the article does not name one."""

    name: ArticleName
    title: str
    author: str = ""
    published: date | None = None
    link: str = ""


class Mistake(Document):
    """Describe a mistake in an article. No row of the ledger is about this mistake."""

    article: ArticleName
    said: str
    """The claim, in the words of the article."""
    shown: str
    """What is true, as a measurement or the article's own code shows."""


class Topic(Document):
    """Name a section of the page, and its rows in order."""

    title: str
    rows: tuple[int, ...]


class Articles(Document):
    """Hold all articles and their mistakes, and the order of the page."""

    chosen: str
    """How the claims were chosen, as a paragraph."""
    topics: tuple[Topic, ...]
    articles: tuple[Article, ...]
    mistakes: tuple[Mistake, ...]


def load(directory: Path) -> Articles:
    """Read articles.yaml in the directory; raises InvalidLedgerError if it is missing or malformed."""
    file = directory / ARTICLES
    try:
        return Articles.model_validate(yaml.safe_load(file.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        raise InvalidLedgerError(f"{file}: {error}") from error
