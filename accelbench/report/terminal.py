"""Turn results into rich renderables for a terminal of 80 columns or more. Pure: it prints nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement, measure_renderables
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from accelbench.api.result import CheckOutcome, Result
from accelbench.report import certificate, details, machine, targets, view
from accelbench.report.table import Bounds, TableColumn
from accelbench.report.table import Table as TextTable
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

PLOT_COLUMNS = 19
AXIS_MARGIN = 1.02
"""Factor by which the axis of drawn intervals reaches beyond them."""
MINIMUM_PLOT_WIDTH = 104
"""Least width of a terminal in which intervals are drawn."""

VERDICT_STYLES = {
    "faster": "bold green",
    "slower": "bold magenta",
    "equivalent": "bold cyan",
    "inconclusive": "yellow",
    "noisy": "yellow",
    "baseline": "dim",
    "fits": "bold green",
    "≈fits": "bold green",
}
BAD = "bold red"
MARKS: dict[CheckOutcome, tuple[str, str]] = {
    "passed": ("✓", "green"),
    "failed": ("✗", BAD),
    "untested": ("?", "yellow"),
}
"""Mark of the whole certificate; it is green only if every check passed."""
NEEDS_ROUNDS = ("✓", "")
"""Mark of a certificate whose only open checks need more rounds: no warning, and no green either."""
LAYOUTS = ((2, True, True), (2, False, False), (1, False, False), (2, True, False), (1, True, False))
"""Layouts of a table, the best first: gap between columns, True if lines may break, True if intervals are drawn."""
UNBOUNDED = 1000
"""Width that is enough for any table."""


class TerminalReport:
    """Show one case's result in the width of the console."""

    def __init__(self, result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> None:
        """Show `expectations` as they were evaluated on this result."""
        self.result = redact_invalid(result)
        self.expectations = expectations

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield title, findings, verdict table, phases, checks, expectations and machine."""
        del console, options
        result = self.result
        yield Text(view.title(result.case), style="bold")
        if partial := view.state(result):
            yield Text(partial, style="bold yellow")
        if view.nothing_measured(result):
            yield from _remarks(result)
            yield from _expectations(self.expectations)
            yield from _notes(result)
            return
        yield Text()
        for sentence in view.sentences(result):
            yield Text(sentence)
        observed = view.observation_rows(result)
        yield observation_table(observed) if observed else Padding(FittedTable(view.verdict_table(result)), (1, 0))
        yield Text(view.basis(result), style="dim")
        yield from (Text(line, style="dim") for line in view.time_notes(result))
        if result.comparisons or result.variants:
            yield from _phases(result)
            yield from _detail_tables(result)
            yield from _outliers(result)
        yield from _remarks(result)
        yield from _checks(result)
        yield from _expectations(self.expectations)
        yield from _notes(result)


def report(result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> RenderableType:
    """Return the report of one case."""
    if targets.is_compiled(result):
        return Group(*_compiled([(result, expectations)]))
    return TerminalReport(result, expectations)


def observation_table(rows: Sequence[view.ObservationRow]) -> RenderableType:
    """Return the table of observations, each variant named once."""
    table = _table()
    table.add_column("variant", overflow="fold")
    table.add_column("observed", no_wrap=True)
    table.add_column("", overflow="fold")
    before = ""
    for row in rows:
        style = "yellow" if row.differs else ""
        table.add_row(row.variant if row.variant != before else "", row.name, Text(row.value, style=style))
        before = row.variant
    return Padding(table, (1, 0))


def _phases(result: Result) -> Iterable[RenderableType]:
    """Yield the table of phases."""
    table = view.phase_table(result)
    if table is None:
        return
    # Two short lines instead of a long one: seven phases have to fit next to a name into 80 columns.
    columns = tuple(
        replace(column, name=column.name.replace("-", "-\n") if len(column.name) > len("compile") else column.name)
        for column in table.columns
    )
    yield Padding(FittedTable(replace(table, columns=columns), first="phases"), (1, 0))


def _detail_tables(result: Result) -> Iterable[RenderableType]:
    """Yield the tables of details, without the spread of times, which `_outliers` sums up."""
    for table in (details.tail(result), details.first_calls(result), details.work(result, brief=True)):
        if table is not None:
            # The head of the first column has room for the caption, which would take a line of its own.
            yield Padding(FittedTable(table, first=table.caption.partition(" (")[0].lower()), (0, 0, 1, 0))


@dataclass(frozen=True)
class _Column:
    """Hold a column as text; cells of a `whole` column must not be broken into lines, its head may."""

    head: Text
    cells: tuple[Text, ...]
    number: bool = False
    whole: bool = False

    def widths(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the least width that splits no word, and the width that breaks no line."""
        measured = measure_renderables(console, options, (self.head, *self.cells))
        if not self.whole or not self.cells:
            return measured
        least = max(measured.minimum, measure_renderables(console, options, self.cells).maximum)
        return Measurement(least, measured.maximum)


def distribute(columns: Sequence[Measurement], room: int) -> list[int]:
    """Return a width for each column: its minimum, then the rest of `room`, always for the narrowest that can grow."""
    widths = [column.minimum for column in columns]
    for _ in range(room - sum(widths)):
        growing = [number for number, column in enumerate(columns) if widths[number] < column.maximum]
        if growing:
            widths[min(growing, key=widths.__getitem__)] += 1
    return widths


class FittedTable:
    """Show a table in the width of the console, or each row as a list if it would have to split words."""

    def __init__(self, table: TextTable, *, first: str = "") -> None:
        """Show `first` instead of the first column's head."""
        self.table = table
        self.first = first or table.columns[0].name

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in the first of `LAYOUTS` that fits, or as lists."""
        room_for_plots = options.max_width >= MINIMUM_PLOT_WIDTH and any(self.table.intervals)
        for gap, folded, plots in LAYOUTS:
            if plots and not room_for_plots:
                continue
            columns = self._columns(plots=plots)
            measured = [column.widths(console, options.update(width=UNBOUNDED)) for column in columns]
            room = options.max_width - gap * (len(columns) - 1)
            if sum(widths.minimum if folded else widths.maximum for widths in measured) <= room:
                yield self._rich_table(columns, distribute(measured, room), gap)
                return
        yield from self._lists()

    def _rich_table(self, columns: Sequence[_Column], widths: Sequence[int], gap: int) -> RichTable:
        """Return a table with all widths set, because rich would split words and cut the last column."""
        table = _table(gap)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.head, justify="right" if column.number else "left", overflow="fold", width=width)
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*row)
        return table

    def _columns(self, *, plots: bool) -> list[_Column]:
        """Return the columns as text; with `plots`, the drawn intervals before the verdict."""
        columns = []
        for number, column in enumerate(self.table.columns):
            if plots and column.kind == "verdict":
                columns.append(_Column(Text("│ equal speed"), self._plots(number), whole=True))
            name = self.first if number == 0 else column.name
            cells = tuple(Text(row[number], style=_style(column, row[number])) for row in self.table.rows)
            whole = column.number or column.kind == "nowrap"
            columns.append(_Column(Text(name), cells, number=column.number, whole=whole))
        return columns

    def _plots(self, number: int) -> tuple[Text, ...]:
        """Return each row's interval in the colour of its verdict, which is in column `number`."""
        axis = axis_for([bounds for bounds in self.table.intervals if bounds], PLOT_COLUMNS)
        return tuple(
            Text(
                draw_interval(bounds, axis) if bounds else "",
                style=_style(self.table.columns[number], row[number]),
            )
            for bounds, row in zip(self.table.intervals, self.table.rows, strict=True)
        )

    def _lists(self) -> RenderResult:
        """Yield each row as its header and a line for each other cell that is not empty."""
        if self.first != "variant":
            yield Text(self.first, style="dim")
        for row in self.table.rows:
            yield Text(row[0], style="bold")
            for column, text in zip(self.table.columns[1:], row[1:], strict=True):
                if text:
                    yield Text.assemble(
                        "  ",
                        (column.name.replace("-\n", "-").replace("\n", " "), "dim"),
                        " ",
                        (text, _style(column, text)),
                    )


def _style(column: TableColumn, text: str) -> str:
    """Return the style of a cell; a verdict without a style of its own is bad."""
    if column.kind == "verdict":
        return VERDICT_STYLES.get(text, BAD)
    return "dim" if column.kind == "aside" else ""


def _outliers(result: Result) -> Iterable[RenderableType]:
    """Yield a line about variants with severe outliers among their blocks."""
    severe = [
        f"{variant.name} {details.outliers(variant.spread.block_outliers)}"
        for variant in result.variants
        if variant.spread and variant.spread.block_outliers.low_severe + variant.spread.block_outliers.high_severe
    ]
    if severe:
        yield Text(f"outlier blocks (kept in all statistics): {'; '.join(severe)}", style="dim")


def _checks(result: Result) -> Iterable[RenderableType]:
    mark, style = NEEDS_ROUNDS if certificate.only_needs_rounds(result) else MARKS[certificate.worst_outcome(result)]
    yield Text(f"{mark} {certificate.summary(result)}", style=style)
    yield from (Text(f"✗ {line}", style=BAD) for line in certificate.failure_lines(result))


def _remarks(result: Result) -> Iterable[RenderableType]:
    yield from (Text(f"! {line}", style="yellow") for line in view.remarks(result))


def _notes(result: Result) -> Iterable[RenderableType]:
    """Yield notes and the machine."""
    yield from (Text(f"note: {note}", style="dim") for note in result.notes)
    if line := machine.line(result.fingerprint):
        yield Text(line, style="dim")


def _expectations(outcomes: Iterable[ExpectationOutcome]) -> Iterable[RenderableType]:
    for outcome in outcomes:
        mark, style = ("✓", "green") if outcome.outcome == "met" else ("✗", BAD)
        yield Text(f"{mark} {outcome.sentence}", style=style)


def _table(gap: int = 2) -> RichTable:
    return RichTable(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def reports(results: Iterable[tuple[Result, Sequence[ExpectationOutcome]]]) -> RenderableType:
    """Return the report of several cases; those that were compiled for targets share one part."""
    parts: list[RenderableType] = []
    cases = list(results)
    for result, outcomes in cases:
        if targets.is_compiled(result):
            continue
        if parts:
            parts.append(Text())
        parts.append(report(result, outcomes))
    compiled = [(result, outcomes) for result, outcomes in cases if targets.is_compiled(result)]
    return Group(*parts, *(_compiled(compiled) if compiled else ()))


def _compiled(cases: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> Iterable[RenderableType]:
    """Yield the report of cases that were compiled for targets."""
    results = [result for result, _ in cases]
    yield Text(view.title(results[0].case, all_cases=True), style="bold")
    yield Text()
    yield from (Text(sentence) for sentence in targets.sentences(*results))
    for table in targets.tables(results):
        yield Padding(FittedTable(table), (1, 0, 0, 0))
    yield Text()
    yield from (Text(line, style="dim") for line in targets.footnotes(results))
    for result, outcomes in cases:
        if partial := view.state(result):
            yield Text(f"{targets.label(result)}: {partial}", style="bold yellow")
        yield from _expectations(outcomes)
        yield from (Text(f"note: {targets.label(result)}: {note}", style="dim") for note in result.notes)
    if line := machine.line(results[0].fingerprint):
        yield Text(f"compiled on {line}", style="dim")


@dataclass(frozen=True)
class Axis:
    """Map speedups to `width` characters on a logarithmic scale that includes 1."""

    low: float
    high: float
    width: int

    def column(self, value: float) -> int:
        """Return the index of the character for `value`."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return min(self.width - 1, max(0, round(share * (self.width - 1))))


def axis_for(intervals: Sequence[Bounds], width: int) -> Axis:
    """Return an axis for all intervals of a table, so that rows can be compared."""
    lower = min([1.0, *(bounds.lower for bounds in intervals)])
    upper = max([1.0, *(bounds.upper for bounds in intervals)])
    return Axis(lower / AXIS_MARGIN, upper * AXIS_MARGIN, width)


def draw_interval(bounds: Bounds, axis: Axis) -> str:
    """Draw an interval as a line of text: `│` marks a speedup of 1, `●` the estimate, `━` the interval."""
    line = [" "] * axis.width
    line[axis.column(1.0)] = "│"
    first, last = axis.column(bounds.lower), axis.column(bounds.upper)
    line[first : last + 1] = "━" * (last + 1 - first)
    line[axis.column(bounds.estimate)] = "●"
    return "".join(line)
