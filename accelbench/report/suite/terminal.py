"""Turn a suite into rich renderables for a terminal. Pure: it prints nothing."""

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from accelbench.report.suite import releases, view
from accelbench.report.suite.view import Suite
from accelbench.report.terminal import FittedTable


def report(suite: Suite) -> RenderableType:
    """Return the report of a suite: releases, comparisons, counts and means, and why verdicts are missing.

    At the end are notes on how to read the report, and descriptions of the machines and environments.
    """
    parts: list[RenderableType] = [Text(suite.name, style="bold")]
    parts += [Text(sentence) for sentence in (releases.sentence(suite), suite.sentence) if sentence]
    comparisons = (
        view.comparison_table(suite),
        view.count_table(suite),
        view.mean_table(suite),
        view.finding_table(suite),
    )
    tables = (*releases.program_tables(suite), *comparisons, *releases.package_tables(suite))
    parts += [Padding(FittedTable(table), (1, 0, 0, 0)) for table in tables if table is not None]
    parts.append(Text())
    parts += [
        Text(f"! {cell.case}, {cell.pair}: {cell.reason}", style="yellow")
        for cell in suite.cells_without_verdict
        if cell.reason
    ]
    parts += [Text(note, style="dim") for note in (*releases.notes(suite), *suite.notes)]
    parts += [Text(line, style="dim") for line in (*suite.machines, *releases.environment_lines(suite))]
    return Group(*parts)
