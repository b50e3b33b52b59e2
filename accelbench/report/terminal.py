"""A result for the terminal: from values to rich renderables, readable from 80 columns on. Pure: it prints nothing."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from accelbench.api.result import CheckOutcome, Result
from accelbench.report import details, interval_plot, machine, targets, view
from accelbench.report.table import Table as TextTable
from accelbench.report.table import TableColumn
from accelbench.verdict.expectations import ExpectationOutcome
from accelbench.verdict.shown import shown

PLOT_WIDTH = 19
DRAWN_FROM = 104
"""From this width on there is room for the intervals, drawn."""

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
"""Of the certificate as a whole: green only where nothing is left open."""
UNBOUNDED = 1000
"""Columns that no table needs."""


class TerminalReport:
    """One case's result, drawn for the width that the console has."""

    def __init__(self, result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> None:
        """`expectations` are those that were evaluated on this result."""
        self.result = shown(result)
        self.expectations = expectations

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Title and findings, verdict table, phases, checks, expectations, machine."""
        del console, options
        result = self.result
        yield Text(view.title(result.case), style="bold")
        if partial := view.state(result):
            yield Text(partial, style="bold yellow")
        yield Text()
        for sentence in view.sentences(result):
            yield Text(sentence)
        observed = view.observation_rows(result)
        yield observation_table(observed) if observed else Padding(Fitted(verdict_table(result)), (1, 0))
        yield Text(view.basis(result), style="dim")
        yield from (Text(line, style="dim") for line in view.time_is(result))
        if result.comparisons or result.variants:
            yield from _phases(result)
            yield from _details(result)
            yield from _outliers(result)
        yield from (Text(f"! {line}", style="yellow") for line in view.remarks(result))
        yield from _checks(result)
        yield from _expectations(self.expectations)
        yield from (Text(f"note: {note}", style="dim") for note in result.notes)
        if line := machine.line(result.fingerprint):
            yield Text(line, style="dim")


def report(result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> RenderableType:
    """Everything that a person wants to see of one case."""
    if targets.is_compiled(result):
        return Group(*_compiled([(result, expectations)]))
    return TerminalReport(result, expectations)


def verdict_table(result: Result) -> TextTable:
    """Variant, time, speedup and verdict."""
    columns = (
        TableColumn("variant"),
        TableColumn(f"time per\n{result.unit}", number=True),
        TableColumn("spread", number=True, kind="aside"),
        TableColumn("speedup", number=True),
        TableColumn("interval", kind="interval"),
        TableColumn("verdict", kind="verdict"),
    )
    rows = view.variant_rows(result)
    cells = tuple((row.name, row.seconds, row.spread, row.speedup, row.interval, row.verdict) for row in rows)
    return TextTable("", columns, cells, drawn=tuple(row.bounds for row in rows))


def observation_table(rows: Sequence[view.ObservationRow]) -> RenderableType:
    """What was observed, each variant named once."""
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
    rows = view.phase_rows(result)
    if not rows:
        return
    # Two short lines rather than one long: seven phases have to fit beside a name into 80 columns.
    heads = (phase.replace("-", "-\n") if len(phase) > len("compile") else phase for phase in view.phases_shown(result))
    columns = (TableColumn("phases"), *(TableColumn(head, number=True) for head in heads))
    yield Padding(Fitted(TextTable("", columns, tuple((row.name, *row.seconds) for row in rows))), (1, 0))


def _details(result: Result) -> Iterable[RenderableType]:
    """All but how times spread, of which a line below says what a reader must know."""
    for found in (details.tail(result), details.first_calls(result), details.work(result, whole=False)):
        if found is None:
            continue
        # A caption of its own would take a line for each table; the head of the first column has room for it.
        yield Padding(Fitted(found, first=found.caption.partition(" (")[0].lower()), (0, 0, 1, 0))


class Fitted:
    """A table of text as wide as there is room for; where words would have to be split, each row is a list."""

    def __init__(self, table: TextTable, *, first: str = "") -> None:
        """`first` is the head of the first column where the caption stands there."""
        self.table = table
        self.first = first or table.columns[0].name

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The first that fits of: with intervals drawn, as it is, closer together, as lists."""
        for gap, plots in ((2, options.max_width >= DRAWN_FROM), (2, False), (1, False)):
            found = self._table(gap, plots=plots and any(self.table.drawn))
            if Measurement.get(console, options.update(width=UNBOUNDED), found).minimum <= options.max_width:
                yield found
                return
        yield from self._lists()

    def _table(self, gap: int, *, plots: bool) -> RichTable:
        found = _table(gap)
        for number, column in enumerate(self.table.columns):
            if plots and column.kind == "verdict":
                found.add_column(Text("│ equal speed"), no_wrap=True)
            widest = max((len(row[number]) for row in self.table.rows), default=0)
            # Heads may break, figures not; what a sentence says may.
            least = widest if column.number or column.kind in {"nowrap", "interval"} else 0
            name = self.first if number == 0 else column.name
            found.add_column(name, justify="right" if column.number else "left", overflow="fold", min_width=least)
        axis = interval_plot.axis([bounds for bounds in self.table.drawn if bounds], PLOT_WIDTH)
        for number, row in enumerate(self.table.rows):
            cells = []
            for column, text in zip(self.table.columns, row, strict=True):
                if plots and column.kind == "verdict":
                    bounds = self.table.drawn[number]
                    cells.append(Text(interval_plot.draw(bounds, axis) if bounds else "", style=_style(column, text)))
                cells.append(Text(text, style=_style(column, text)))
            found.add_row(*cells)
        return found

    def _lists(self) -> RenderResult:
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
    if column.kind == "verdict":
        return VERDICT_STYLES.get(text, BAD)
    return "dim" if column.kind == "aside" else ""


def _outliers(result: Result) -> Iterable[RenderableType]:
    severe = [
        f"{variant.name} {details.outliers(variant.spread.block_outliers)}"
        for variant in result.variants
        if variant.spread and variant.spread.block_outliers.low_severe + variant.spread.block_outliers.high_severe
    ]
    if severe:
        yield Text(f"outlier blocks (kept in all statistics): {'; '.join(severe)}", style="dim")


def _checks(result: Result) -> Iterable[RenderableType]:
    mark, style = MARKS[view.worst_outcome(result)]
    yield Text(f"{mark} {view.checks_summary(result)}", style=style)
    yield from (Text(f"✗ {line}", style=BAD) for line in view.trouble(result))


def _expectations(outcomes: Iterable[ExpectationOutcome]) -> Iterable[RenderableType]:
    for outcome in outcomes:
        mark, style = ("✓", "green") if outcome.outcome == "met" else ("✗", BAD)
        yield Text(f"{mark} {outcome.sentence}", style=style)


def _table(gap: int = 2) -> RichTable:
    return RichTable(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def reports(results: Iterable[tuple[Result, Sequence[ExpectationOutcome]]]) -> RenderableType:
    """Several cases, one after the other; those that were compiled for targets, together."""
    parts: list[RenderableType] = []
    given = list(results)
    for result, outcomes in given:
        if targets.is_compiled(result):
            continue
        if parts:
            parts.append(Text())
        parts.append(report(result, outcomes))
    compiled = [(result, outcomes) for result, outcomes in given if targets.is_compiled(result)]
    return Group(*parts, *(_compiled(compiled) if compiled else ()))


def _compiled(given: Sequence[tuple[Result, Sequence[ExpectationOutcome]]]) -> Iterable[RenderableType]:
    """Targets by variants."""
    results = [result for result, _ in given]
    yield Text(view.title(results[0].case, of_all=True), style="bold")
    yield Text()
    yield from (Text(sentence) for sentence in targets.sentences(*results))
    for table in targets.tables(results):
        yield Padding(Fitted(table), (1, 0, 0, 0))
    yield Text()
    yield from (Text(line, style="dim") for line in targets.footnotes(results))
    for result, outcomes in given:
        if partial := view.state(result):
            yield Text(f"{targets.label(result)}: {partial}", style="bold yellow")
        yield from _expectations(outcomes)
        yield from (Text(f"note: {targets.label(result)}: {note}", style="dim") for note in result.notes)
    if line := machine.line(results[0].fingerprint):
        yield Text(f"compiled on {line}", style="dim")
