"""Whether words stand in an article, whatever its typography; quotes.yaml has the passages that claims quote from."""

import re
import unicodedata
from pathlib import Path

import yaml

FIXTURE = Path(__file__).with_name("quotes.yaml")
GOES_ON = r"[,;(-]|[a-z]+ (?!=)"
"""A clause, a parenthesis or another word; not the code, heading or colon that stands after a sentence."""
ALIKE = {
    "\N{LEFT SINGLE QUOTATION MARK}": "'",
    "\N{RIGHT SINGLE QUOTATION MARK}": "'",
    "\N{LEFT DOUBLE QUOTATION MARK}": '"',
    "\N{RIGHT DOUBLE QUOTATION MARK}": '"',
    "\N{EN DASH}": "-",
    "\N{EM DASH}": "-",
    "--": "-",
    "`": "",
}


def passages() -> dict[str, list[str]]:
    """Return unchanged short passages of each article, by its name in the ledger."""
    found: dict[str, list[str]] = yaml.safe_load(FIXTURE.read_text(encoding="utf-8"))
    return found


def stands_in(words: str, texts: list[str]) -> bool:
    """Return whether one of the texts contains the words in this order."""
    return any(normalised(words) in normalised(text) for text in texts)


def is_whole(words: str, texts: list[str]) -> bool:
    """Return whether the quote ends with a sentence or a line of the article, including its qualification."""
    said = normalised(words)
    following = [text[text.index(said) + len(said) :].lstrip() for text in map(normalised, texts) if said in text]
    return said.endswith((".", "!", "?")) or any(after and not re.match(GOES_ON, after) for after in following)


def normalised(text: str) -> str:
    """Return the text with one kind of quotation mark, dash and space."""
    text = unicodedata.normalize("NFKC", text)
    for typographic, plain in ALIKE.items():
        text = text.replace(typographic, plain)
    return re.sub(r"\s+", " ", text).strip()
