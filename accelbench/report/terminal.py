"""A result for the terminal: from values to rich renderables, readable from 80 columns on. Pure: it prints nothing."""

from collections.abc import Iterable, Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from accelbench.api.result import Result
from accelbench.expectations import ExpectationOutcome
from accelbench.report import details, interval_plot, machine, view
from accelbench.report.table import Table as TextTable

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
}
BAD = "bold red"


class Report:
    """One case's result, drawn for the width that the console has."""

    def __init__(self, result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> None:
        """`expectations` are those that were evaluated on this result."""
        self.result = result
        self.expectations = expectations

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Title and findings, verdict table, phases, checks, expectations, machine."""
        del console
        result = self.result
        yield Text(view.title(result.case), style="bold")
        if partial := view.state(result):
            yield Text(partial, style="bold yellow")
        yield Text()
        for sentence in view.sentences(result):
            yield Text(sentence)
        observed = view.observation_rows(result)
        yield observation_table(observed) if observed else verdict_table(result, width=options.max_width)
        yield Text(view.basis(result), style="dim")
        if result.comparisons or result.variants:
            yield from _phases(result, width=options.max_width)
            yield from _details(result)
            yield from _outliers(result)
        yield from (Text(f"! {line}", style="yellow") for line in view.quarantined(result))
        yield from _checks(result)
        yield from _expectations(self.expectations)
        yield from (Text(f"note: {note}", style="dim") for note in result.notes)
        if line := machine.line(result.fingerprint):
            yield Text(line, style="dim")


def report(result: Result, expectations: Sequence[ExpectationOutcome] = ()) -> RenderableType:
    """Everything that a person wants to see of one case."""
    return Report(result, expectations)


def verdict_table(result: Result, *, width: int) -> RenderableType:
    """Variant, time, speedup and verdict; with room for it also the interval drawn."""
    rows = view.variant_rows(result)
    drawn = [row.bounds for row in rows if row.bounds and width >= DRAWN_FROM]
    table = _table()
    table.add_column("variant", overflow="fold")
    table.add_column(f"time per\n{result.unit}", justify="right", min_width=8)
    table.add_column("spread", justify="right", no_wrap=True)
    table.add_column("speedup", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    if drawn:
        table.add_column(Text("│ equal speed"), no_wrap=True)
    table.add_column("verdict", overflow="fold")
    for row in rows:
        cells: list[RenderableType] = [row.name, row.seconds, Text(row.spread, style="dim"), row.speedup, row.interval]
        if drawn:
            plot = interval_plot.draw(row.bounds, interval_plot.axis(drawn, PLOT_WIDTH)) if row.bounds else ""
            cells.append(Text(plot, style=VERDICT_STYLES.get(row.verdict, "")))
        cells.append(Text(row.verdict, style=VERDICT_STYLES.get(row.verdict, BAD)))
        table.add_row(*cells)
    return Padding(table, (1, 0))


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


def _phases(result: Result, *, width: int) -> Iterable[RenderableType]:
    rows = view.phase_rows(result)
    if not rows:
        return
    table = _table(gap=2 if width >= DRAWN_FROM else 1)
    table.add_column("phases", overflow="fold")
    for phase in view.phases_shown(result):
        # Two short lines rather than one long: seven phases have to fit beside a name into 80 columns.
        table.add_column(phase.replace("-", "-\n") if len(phase) > len("compile") else phase, justify="right")
    for row in rows:
        table.add_row(row.name, *row.seconds)
    yield Padding(table, (1, 0))


def _details(result: Result) -> Iterable[RenderableType]:
    """All but how times spread, of which a line below says what a reader must know."""
    for found in (details.tail(result), details.first_calls(result), details.costs(result, whole=False)):
        if found is None:
            continue
        # A caption of its own would take a line for each table; the head of the first column has room for it.
        yield Padding(drawn(found, first=found.caption.partition(" (")[0].lower()), (0, 0, 1, 0))


def drawn(found: TextTable, *, first: str = "") -> Table:
    """A table of text for the terminal; `first` is the head of its first column where the caption stands there."""
    table = _table()
    for number, column in enumerate(found.columns):
        widest = max((len(row[number]) for row in found.rows), default=0)
        # Heads may break, figures not; what a sentence says may.
        least = widest if column.number or column.kind == "nowrap" else 0
        name = first if first and number == 0 else column.name
        table.add_column(name, justify="right" if column.number else "left", overflow="fold", min_width=least)
    verdict = next((number for number, column in enumerate(found.columns) if column.kind == "verdict"), None)
    for row in found.rows:
        cells = list(map(Text, row))
        if verdict is not None:
            cells[verdict].stylize(VERDICT_STYLES.get(row[verdict], BAD))
        table.add_row(*cells)
    return table


def _outliers(result: Result) -> Iterable[RenderableType]:
    severe = [
        f"{variant.name} {details.outliers(variant.spread.block_outliers)}"
        for variant in result.variants
        if variant.spread and variant.spread.block_outliers.low_severe + variant.spread.block_outliers.high_severe
    ]
    if severe:
        yield Text(f"blocks far out, which count like all others: {'; '.join(severe)}", style="dim")


def _checks(result: Result) -> Iterable[RenderableType]:
    failed = view.failed_checks(result)
    mark, style = ("✗", BAD) if failed else ("✓", "green")
    if all(check.outcome == "untested" for check in result.certificate.checks):
        mark, style = "·", "yellow"
    yield Text(f"{mark} {view.checks_summary(result)}", style=style)
    yield from (Text(f"✗ {line}", style=BAD) for line in view.trouble(result))


def _expectations(outcomes: Iterable[ExpectationOutcome]) -> Iterable[RenderableType]:
    for outcome in outcomes:
        mark, style = ("✓", "green") if outcome.outcome == "met" else ("✗", BAD)
        yield Text(f"{mark} {outcome.sentence}", style=style)


def _table(gap: int = 2) -> Table:
    return Table(box=None, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")


def reports(results: Iterable[tuple[Result, Sequence[ExpectationOutcome]]]) -> RenderableType:
    """Several cases, one after the other."""
    parts: list[RenderableType] = []
    for result, outcomes in results:
        if parts:
            parts.append(Text())
        parts.append(report(result, outcomes))
    return Group(*parts)
