"""Describe a table once: a caption, columns, rows of text. The terminal, Markdown and HTML each paint it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Bounds:
    """Hold a speedup with its interval, as numbers to draw."""

    lower: float
    estimate: float
    upper: float


@dataclass(frozen=True)
class TableColumn:
    """Describe a column of a table."""

    name: str
    number: bool = False
    """Cells are aligned at the right."""
    kind: str = ""
    """Class of the page's style sheet; `verdict` and `aside` have a style in the terminal too."""


@dataclass(frozen=True)
class Table:
    """Hold rows of text; the first cell of each is its header."""

    caption: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str, ...], ...]
    intervals: tuple[Bounds | None, ...] = ()
    """For each row, the interval that can be drawn next to its verdict."""

    def without_empty_columns(self) -> "Table":
        """Return the table without columns whose cells are all empty, but always with the first column."""
        indices = [0, *(index for index in range(1, len(self.columns)) if any(row[index] for row in self.rows))]
        return self._with_columns(indices)

    def with_verdict_first(self) -> "Table":
        """Return the table with the verdict as second column, for narrow screens."""
        indices = range(1, len(self.columns))
        verdicts = [index for index in indices if self.columns[index].kind == "verdict"]
        others = [index for index in indices if index not in verdicts]
        return self._with_columns([0, *verdicts, *others])

    def _with_columns(self, indices: Iterable[int]) -> "Table":
        """Return the table with only the columns that have these indices, in this order."""
        indices = tuple(indices)
        return replace(
            self,
            columns=tuple(self.columns[index] for index in indices),
            rows=tuple(tuple(row[index] for index in indices) for row in self.rows),
        )


def make_table(caption: str, columns: Iterable[TableColumn], rows: Iterable[tuple[str, ...]]) -> Table | None:
    """Return a table without empty columns; None if all columns after the first are empty."""
    table = Table(caption, tuple(columns), tuple(rows)).without_empty_columns()
    return table if len(table.columns) > 1 else None
