"""A table as every report takes it: a caption, columns, rows of text. The terminal, Markdown and HTML draw the same."""

from collections.abc import Iterable
from dataclasses import dataclass

from accelbench.report.view import Bounds


@dataclass(frozen=True)
class TableColumn:
    """`number`: its cells are aligned at the right; `kind` is a class of the page's style sheet."""

    name: str
    number: bool = False
    kind: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of text; the first cell of each is its header."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    drawn: tuple[Bounds | None, ...] = ()
    """Of each row the interval that may be drawn beside it."""


def filled(caption: str, columns: Iterable[TableColumn], rows: Iterable[tuple[str, ...]]) -> Table | None:
    """The table without the columns that say nothing in any row; None where only the headers of rows would be left."""
    columns, rows = tuple(columns), tuple(rows)
    kept = [0, *(number for number in range(1, len(columns)) if any(row[number] for row in rows))]
    if len(kept) == 1:
        return None
    return Table(
        caption, tuple(columns[number] for number in kept), tuple(tuple(row[number] for number in kept) for row in rows)
    )
