"""Turn results into rich renderables for a terminal of 80 columns or more. Pure: it prints nothing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement, measure_renderables
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from accelbench.api.result import CheckOutcome, Result
from accelbench.explanation.explain import explain
from accelbench.report import certificate, details, machine, targets, view
from accelbench.report.table import Bounds, TableColumn
from accelbench.report.table import Table as TextTable
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.redaction import redact_invalid

PLOT_COLUMNS = 19
AXIS_MARGIN = 1.02
"""Factor by which the axis of drawn intervals reaches beyond them."""
MINIMUM_PLOT_WIDTH = 104
"""Minimum width of a terminal in which intervals are drawn."""

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


class Layout(NamedTuple):
    """Define one way to fit a table into the width of the console."""

    gap: int
    """Number of spaces between columns."""
    may_break_lines: bool
    draws_intervals: bool


LAYOUTS = (
    Layout(gap=2, may_break_lines=True, draws_intervals=True),
    Layout(gap=2, may_break_lines=False, draws_intervals=False),
    Layout(gap=1, may_break_lines=False, draws_intervals=False),
    Layout(gap=2, may_break_lines=True, draws_intervals=False),
    Layout(gap=1, may_break_lines=True, draws_intervals=False),
)
"""Layouts of a table, the best first."""
UNBOUNDED = 1000
"""Width that is enough for any table."""


class TerminalReport:
    """Show one case's result in the width of the console."""

    def __init__(self, result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> None:
        """Keep the result, but without the times of variants that a failed check makes invalid."""
        self.result = redact_invalid(result)
        self.expectations = expectations

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the parts of the report, from the title to the notes, for rich to print."""
        del console, options
        result = self.result
        yield Text(view.title(result.case), style="bold")
        if warning := view.warning(result):
            yield Text(warning, style="bold yellow")
        if view.nothing_measured(result):
            yield from _remarks(result)
            yield from _expectations(self.expectations)
            yield from _notes(result)
            return
        yield Text()
        for sentence in view.sentences(result):
            yield Text(sentence)
        if observations := view.observation_rows(result):
            yield observation_table(observations)
        else:
            yield Padding(FittedTable(view.verdict_table(result)), (1, 0))
        yield Text(view.measurement_summary(result), style="dim")
        yield from (Text(line, style="dim") for line in view.time_notes(result))
        if reasons := explain(result):
            yield Text("\nWhy", style="bold")
            yield from map(Text, reasons)
            yield Text()
        yield from _phases(result)
        yield from _detail_tables(result)
        yield from _outliers(result)
        yield from _remarks(result)
        yield from _checks(result)
        yield from _expectations(self.expectations)
        yield from _notes(result)


def report(result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> RenderableType:
    """Return the report of one case, which was measured or only compiled."""
    if targets.is_compile_only(result):
        return Group(*_compile_only_report([(result, expectations)]))
    return TerminalReport(result, expectations)


def observation_table(rows: Sequence[view.ObservationRow]) -> RenderableType:
    """Return the table of observations; a value is yellow if launches differ in it.

    The rows of a variant follow each other, so that only the first one shows the name of the variant.
    """
    table = _table()
    table.add_column("variant", overflow="fold")
    table.add_column("observed", no_wrap=True)
    table.add_column("", overflow="fold")
    previous_variant = ""
    for row in rows:
        style = "yellow" if row.differs else ""
        variant = row.variant if row.variant != previous_variant else ""
        table.add_row(variant, row.name, Text(row.value, style=style))
        previous_variant = row.variant
    return Padding(table, (1, 0))


def _phases(result: Result) -> Iterable[RenderableType]:
    """Yield the table of the phases of a launch; nothing if no variant reached a phase."""
    table = view.phase_table(result)
    if table is None:
        return
    columns = tuple(map(_with_short_heading, table.columns))
    yield Padding(FittedTable(replace(table, columns=columns), first_heading="phases"), (1, 0))


def _with_short_heading(column: TableColumn) -> TableColumn:
    """Return the column with a line break in a long heading, so that the table of phases fits 80 characters."""
    if len(column.name) <= len("compile"):  # the longest heading that needs no break
        return column
    return replace(column, name=column.name.replace("-", "-\n"))


def _detail_tables(result: Result) -> Iterable[RenderableType]:
    """Yield the tables below the verdict that are not empty: requests, slowest calls, operations, first calls, work."""
    for table in (
        details.requests(result),
        details.tail(result),
        details.operation_times(result),
        details.first_calls(result),
        details.work(result, brief=True),
    ):
        if table is not None:
            # Use the caption, without its part in parentheses, as the heading of the first column: above the table it
            # would take another line.
            caption = table.caption.partition(" (")[0].lower()
            yield Padding(FittedTable(table, first_heading=caption), (0, 0, 1, 0))


@dataclass(frozen=True)
class _Column:
    """Hold a column as text."""

    heading: Text
    cells: tuple[Text, ...]
    number: bool = False
    nowrap: bool = False
    """True if a cell must be on one line; the heading may be on several."""

    def widths(self, console: Console, options: ConsoleOptions) -> Measurement:
        """Return the column's minimum width, at which no word is split, and its maximum, at which no line breaks."""
        column_widths = measure_renderables(console, options, (self.heading, *self.cells))
        if not self.nowrap or not self.cells:
            return column_widths
        cell_widths = measure_renderables(console, options, self.cells)
        # The heading may break into lines, but each cell needs its whole text on one line.
        return Measurement(max(column_widths.minimum, cell_widths.maximum), column_widths.maximum)


def distribute_width(columns: Sequence[Measurement], total_width: int) -> list[int]:
    """Divide `total_width` characters among columns with these minimum and maximum widths; return the width of each.

    Each column begins with its minimum. The narrowest column that is below its maximum then gets one more character,
    until no character is left or every column has its maximum.
    """
    widths = [column.minimum for column in columns]
    for _ in range(total_width - sum(widths)):
        growing = [index for index, column in enumerate(columns) if widths[index] < column.maximum]
        if growing:
            narrowest = min(growing, key=lambda index: widths[index])
            widths[narrowest] += 1
    return widths


class FittedTable:
    """Show a table in the width of the console; if words would have to be split, show each row as a list."""

    def __init__(self, table: TextTable, *, first_heading: str = "") -> None:
        """Keep the table; `first_heading` replaces the heading of its first column."""
        self.table = table
        self.first_heading = first_heading or table.columns[0].name

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table in the first of `LAYOUTS` that fits the width; if none fits, yield each row as a list."""
        may_draw_intervals = options.max_width >= MINIMUM_PLOT_WIDTH and any(self.table.intervals)
        for layout in LAYOUTS:
            if layout.draws_intervals and not may_draw_intervals:
                continue
            columns = self._columns(draws_intervals=layout.draws_intervals)
            widths = [column.widths(console, options.update(width=UNBOUNDED)) for column in columns]
            needed_width = sum(width.minimum if layout.may_break_lines else width.maximum for width in widths)
            available_width = options.max_width - layout.gap * (len(columns) - 1)
            if needed_width <= available_width:
                yield self._rich_table(columns, distribute_width(widths, available_width), layout.gap)
                return
        yield from self._rows_as_lists()

    def _rich_table(self, columns: Sequence[_Column], widths: Sequence[int], gap: int) -> RichTable:
        """Return the table with columns of these widths, because rich itself would choose widths that split words."""
        table = _table(gap)
        for column, width in zip(columns, widths, strict=True):
            table.add_column(column.heading, justify="right" if column.number else "left", overflow="fold", width=width)
        for row in zip(*(column.cells for column in columns), strict=True):
            table.add_row(*row)
        return table

    def _columns(self, *, draws_intervals: bool) -> list[_Column]:
        """Return the columns of the table; if `draws_intervals`, a column of drawings precedes the verdict."""
        columns = []
        for index, column in enumerate(self.table.columns):
            if draws_intervals and column.kind == "verdict":
                # The heading explains the line that each drawing has at a speedup of 1.
                columns.append(_Column(Text("│ equal speed"), self._drawn_intervals(index), nowrap=True))
            heading = self.first_heading if index == 0 else column.name
            cells = tuple(Text(row[index], style=_style(column, row[index])) for row in self.table.rows)
            nowrap = column.number or column.kind == "nowrap"
            columns.append(_Column(Text(heading), cells, number=column.number, nowrap=nowrap))
        return columns

    def _drawn_intervals(self, verdict_index: int) -> tuple[Text, ...]:
        """Return a cell for each row: a drawing of the row's interval, if it has one, in the colour of its verdict."""
        axis = axis_for([bounds for bounds in self.table.intervals if bounds], PLOT_COLUMNS)
        verdict_column = self.table.columns[verdict_index]
        cells = []
        for bounds, row in zip(self.table.intervals, self.table.rows, strict=True):
            drawing = draw_interval(bounds, axis) if bounds else ""
            cells.append(Text(drawing, style=_style(verdict_column, row[verdict_index])))
        return tuple(cells)

    def _rows_as_lists(self) -> RenderResult:
        """Yield each row as a list, one cell per line, for a console that is too narrow for the table."""
        if self.first_heading != "variant":  # names of variants need no heading
            yield Text(self.first_heading, style="dim")
        for header, *cells in self.table.rows:
            yield Text(header, style="bold")
            for column, text in zip(self.table.columns[1:], cells, strict=True):
                if text:
                    # A heading can contain line breaks, which a list does not need.
                    heading = column.name.replace("-\n", "-").replace("\n", " ")
                    yield Text.assemble("  ", (heading, "dim"), " ", (text, _style(column, text)))


def _style(column: TableColumn, text: str) -> str:
    """Return the style in which rich prints a cell with this text."""
    if column.kind == "verdict":
        # Any other text says why there is no verdict, such as `invalid: parity`.
        return VERDICT_STYLES.get(text, BAD)
    return "dim" if column.kind == "aside" else ""


def _outliers(result: Result) -> Iterable[RenderableType]:
    """Yield a line that counts the outliers of each variant with severe outliers; nothing without such variants."""
    texts = []
    for variant in result.variants:
        counts = variant.spread.block_outliers if variant.spread else None
        if counts and (counts.low_severe or counts.high_severe):
            texts.append(f"{variant.name} {details.outliers(counts)}")
    if texts:
        yield Text(f"outlier blocks (kept in all statistics): {'; '.join(texts)}", style="dim")


def _checks(result: Result) -> Iterable[RenderableType]:
    """Yield the summary of the validity checks, then a line for each failed variant and each failed check."""
    mark, style = NEEDS_ROUNDS if certificate.only_needs_rounds(result) else MARKS[certificate.worst_outcome(result)]
    yield Text(f"{mark} {certificate.summary(result)}", style=style)
    yield from (Text(f"✗ {line}", style=BAD) for line in certificate.failure_lines(result))


def _remarks(result: Result) -> Iterable[RenderableType]:
    """Yield sentences about disturbed rounds and missing verdicts."""
    yield from (Text(f"! {line}", style="yellow") for line in view.remarks(result))


def _notes(result: Result) -> Iterable[RenderableType]:
    """Yield a line for each note of the result, then lines that describe the machine and the variants' environments."""
    yield from (Text(f"note: {note}", style="dim") for note in result.notes)
    if line := machine.describe(result.fingerprint):
        yield Text(line, style="dim")
    yield from (Text(line, style="dim") for line in machine.describe_environments(result))


def _expectations(outcomes: Iterable[ExpectationOutcome]) -> Iterable[RenderableType]:
    """Yield a line for each expectation, with the mark `✗` unless it was met."""
    for outcome in outcomes:
        mark, style = ("✓", "green") if outcome.outcome == "met" else ("✗", BAD)
        yield Text(f"{mark} {outcome.sentence}", style=style)


def _table(gap: int = 2) -> RichTable:
    """Return an empty table without lines; `gap` is the space between columns."""
    return RichTable(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def reports(results: Iterable[tuple[Result, Sequence[ExpectationOutcome]]]) -> RenderableType:
    """Return the reports of all measured cases, then one report of all cases that were only compiled."""
    measured_reports: list[RenderableType] = []
    compiled_cases = []
    for result, outcomes in results:
        if targets.is_compile_only(result):
            compiled_cases.append((result, outcomes))
            continue
        if measured_reports:
            measured_reports.append(Text())  # an empty line between two reports
        measured_reports.append(report(result, outcomes))
    if not compiled_cases:
        return Group(*measured_reports)
    return Group(*measured_reports, *_compile_only_report(compiled_cases))


def _compile_only_report(cases: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> Iterable[RenderableType]:
    """Yield one report of all cases that were compiled for targets and not run, part by part."""
    results = [result for result, _ in cases]
    yield Text(view.title(results[0].case, compiled_cases=True), style="bold")
    yield Text()
    yield from (Text(sentence) for sentence in targets.sentences(*results))
    for table in targets.tables(results):
        yield Padding(FittedTable(table), (1, 0, 0, 0))
    yield Text()
    yield from (Text(line, style="dim") for line in targets.footnotes(results))
    for result, outcomes in cases:
        if warning := view.warning(result):
            yield Text(f"{targets.case_label(result)}: {warning}", style="bold yellow")
        yield from _expectations(outcomes)
        yield from (Text(f"note: {targets.case_label(result)}: {note}", style="dim") for note in result.notes)
    if line := machine.describe(results[0].fingerprint):
        yield Text(f"compiled on {line}", style="dim")


@dataclass(frozen=True)
class Axis:
    """Map speedups to `width` characters on a logarithmic scale that includes 1."""

    low: float
    high: float
    width: int

    def column(self, value: float) -> int:
        """Return where a speedup is on the logarithmic axis, as the index of a character from 0 to `width` - 1."""
        position = math.log(value / self.low) / math.log(self.high / self.low)
        return min(self.width - 1, max(0, round(position * (self.width - 1))))


def axis_for(intervals: Sequence[Bounds], width: int) -> Axis:
    """Return an axis of `width` characters on which a speedup of 1 and all these intervals fit."""
    lower = min([1.0, *(bounds.lower for bounds in intervals)])
    upper = max([1.0, *(bounds.upper for bounds in intervals)])
    return Axis(lower / AXIS_MARGIN, upper * AXIS_MARGIN, width)


def draw_interval(bounds: Bounds, axis: Axis) -> str:
    """Draw an interval as a line of text, such as `  │   ━━●━━  `: `│` is at 1, `●` at the estimate."""
    line = [" "] * axis.width
    line[axis.column(1.0)] = "│"
    first, last = axis.column(bounds.lower), axis.column(bounds.upper)
    line[first : last + 1] = "━" * (last + 1 - first)
    line[axis.column(bounds.estimate)] = "●"
    return "".join(line)
