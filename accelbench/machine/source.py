"""Reduce a program's source to its code, so that its digest changes only if the program may compute something else."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from typing import NamedTuple

NEW_LINE = re.compile("\r\n?|\n")
"""What ends a line in Python. `str.splitlines` also splits at characters that may be inside of a string."""


class Span(NamedTuple):
    """The place of a piece of source: lines from 0, columns in characters from 0, the end not included."""

    first_line: int
    start: int
    last_line: int
    end: int


def code_of(source: str) -> str:
    """Return the source without comments, docstrings and blank lines; unchanged if it is not Python.

    The result is a text for a digest, the same in each release of Python. It need not be a program: a function that has
    only a docstring loses its body.
    """
    lines = NEW_LINE.split(source)
    try:
        tree = ast.parse(source)
        spans = [*_comments(lines), *_docstrings(tree, lines)]
    except (SyntaxError, ValueError, tokenize.TokenError):
        return source
    for span in sorted(spans, reverse=True):
        rest = lines[span.last_line][span.end :]
        lines[span.first_line] = lines[span.first_line][: span.start] + rest
        for index in range(span.first_line + 1, span.last_line + 1):
            lines[index] = ""
    inside_strings = _lines_inside_strings(tree)
    return "\n".join(
        line if index in inside_strings else line.rstrip()
        for index, line in enumerate(lines)
        if line.strip() or index in inside_strings
    )


def _comments(lines: list[str]) -> Iterator[Span]:
    """Yield where each comment is."""
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT:
            (line, start), (_, end) = token.start, token.end
            yield Span(line - 1, start, line - 1, end)


def _docstrings(tree: ast.Module, lines: list[str]) -> Iterator[Span]:
    """Yield where each docstring is."""
    for node in _docstring_nodes(tree):
        first, last = _lines_of(node)
        end = _column(lines[last], node.end_col_offset or 0)
        yield Span(first, _column(lines[first], node.col_offset), last, end)


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield the string of each statement that is only a string, as also stands below attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _lines_inside_strings(tree: ast.Module) -> frozenset[int]:
    """Return the lines of strings of several lines, whose blank lines count; docstrings left out."""
    docstrings = set(_docstring_nodes(tree))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and node not in docstrings:
            first, last = _lines_of(node)
            if first < last:
                inside.update(range(first, last + 1))
    return frozenset(inside)


def _lines_of(node: ast.expr) -> tuple[int, int]:
    """Return the first and the last line of an expression, from 0."""
    return node.lineno - 1, (node.end_lineno or node.lineno) - 1


def _column(line: str, offset: int) -> int:
    """Return the column in characters of an offset in bytes, in which `ast` counts."""
    return len(line.encode()[:offset].decode())
