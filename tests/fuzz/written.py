"""Properties of all texts for people, for every content."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt

STYLES = re.compile(r"\x1b\[[0-9;]*m")
"""Colours, the only thing that we tell a terminal in a report."""
MARKUP = {"html_block", "html_inline", "link_open", "image", "code_inline", "fence", "em_open", "strong_open"}


def assert_line(text: str) -> None:
    """One line without control characters, and none that change the direction of what is around them."""
    assert text.isprintable(), repr(text)


def assert_readable(text: str) -> None:
    """Lines of that kind, with colours."""
    for line in STYLES.sub("", text).split("\n"):
        assert_line(line)


def assert_markdown(text: str) -> None:
    """Lines that a reader of Markdown finds no markup in but headings, lists, tables and the state of a case."""
    assert_readable(text)
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inside = [each for token in tokens for each in (token, *(token.children or ()))]
    found = {token.type for token in inside}
    # Whether a case is whole is said in bold, a paragraph of its own.
    bold = [token for token in inside if token.type == "strong_open"]
    assert found & (MARKUP - {"strong_open"}) == set(), found & MARKUP
    assert len(bold) <= text.count("\n**"), text
