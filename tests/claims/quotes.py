"""Whether words stand in an article, whatever its typography; quotes.yaml has the passages that claims quote from."""

import re
import unicodedata
from pathlib import Path

import yaml

FIXTURE = Path(__file__).with_name("quotes.yaml")
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
    """Of each article, by its name in the ledger: short passages, cut out of its text and otherwise untouched."""
    found: dict[str, list[str]] = yaml.safe_load(FIXTURE.read_text(encoding="utf-8"))
    return found


def stands_in(words: str, texts: list[str]) -> bool:
    """Whether one of the texts has the words, one after the other."""
    return any(normalised(words) in normalised(text) for text in texts)


def normalised(text: str) -> str:
    """Without typography: one kind of quotation mark and dash, one space."""
    text = unicodedata.normalize("NFKC", text)
    for typographic, plain in ALIKE.items():
        text = text.replace(typographic, plain)
    return re.sub(r"\s+", " ", text).strip()
