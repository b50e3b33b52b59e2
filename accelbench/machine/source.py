"""Reduce a program's source to its code, so that its digest changes only if the program may compute something else."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

NEW_LINE = re.compile("\r\n?|\n")
"""The ends of lines in Python. `str.splitlines` also splits at other characters, which may be inside a string."""


class Span(NamedTuple):
    """Locate a part of a source: lines from 0, columns in characters from 0; the end column is not included."""

    first_line: int
    start: int
    last_line: int
    end: int


@lru_cache(maxsize=256)
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
    for span in sorted(spans, reverse=True):  # from the end, so that the other spans keep their columns
        text_after = lines[span.last_line][span.end :]
        lines[span.first_line] = lines[span.first_line][: span.start] + text_after
        for index in range(span.first_line + 1, span.last_line + 1):
            lines[index] = ""
    inside_strings = _lines_inside_strings(tree)
    code_lines = []
    for index, line in enumerate(lines):
        if index in inside_strings:
            code_lines.append(line)
        elif line.strip():
            code_lines.append(line.rstrip())
    return "\n".join(code_lines)


def _comments(lines: list[str]) -> Iterator[Span]:
    """Yield the span of each comment."""
    for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
        if token.type == tokenize.COMMENT:
            (line, start), (_, end) = token.start, token.end
            yield Span(line - 1, start, line - 1, end)


def _docstrings(tree: ast.Module, lines: list[str]) -> Iterator[Span]:
    """Yield the span of each docstring."""
    for node in _docstring_nodes(tree):
        first, last = _lines_of(node)
        end = _column(lines[last], node.end_col_offset or 0)
        yield Span(first, _column(lines[first], node.col_offset), last, end)


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.Constant]:
    """Yield each string that is a statement of its own: a docstring, or the text below an attribute."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def _lines_inside_strings(tree: ast.Module) -> frozenset[int]:
    """Return the lines, from 0, of strings that span several lines, without docstrings: their blank lines are code."""
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
    """Convert an offset in bytes, as `ast` counts, to a column in characters."""
    return len(line.encode()[:offset].decode())
