"""`accelbench report RESULT`: a verdict once more, from what a run left on disk."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accelbench.cli.exits import Exit

if TYPE_CHECKING:
    from accelbench.cli.results import Found


class ReportOutput(StrEnum):
    """Text for people, JSON for scripts, Markdown for a pull request, HTML for a browser, CSV for a spreadsheet."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"
    CSV = "csv"


BASELINE = typer.Option(
    metavar="VARIANT", help="Compare with this variant instead; the intervals are then widened for all pairs."
)
OUTPUT = typer.Option("--output", "-o", help="How to print it.")


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A result: its JSON, a BenchmarkResult as kubectl prints it, or a directory of `run --out`.",
        ),
    ],
    baseline: Annotated[str | None, BASELINE] = None,
    output: Annotated[ReportOutput, OUTPUT] = ReportOutput.TABLE,
) -> None:
    """Show the report of an existing result."""
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.results import read

    if not path.exists():
        raise typer.BadParameter(f"{path} does not exist", param_hint="RESULT")
    refuse_without_what_it_needs(output)
    try:
        found = with_baseline(read(path), baseline, str(path))
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    show(found, output, str(path))


def refuse_without_what_it_needs(output: ReportOutput) -> None:
    """End the command where something is not installed that this output needs."""
    from accelbench.report import html

    if output is ReportOutput.HTML and (what := html.missing()) is not None:
        typer.echo(f"error: {what}", err=True)
        raise typer.Exit(Exit.USAGE)


def show(found: "Found", output: ReportOutput, source: str) -> None:
    """Print what was found at `source`."""
    from accelbench.cli.console import console
    from accelbench.cli.json_report import json_report
    from accelbench.report import html, markdown, terminal, tidy

    if not found.measured:
        ended = found.record is not None and found.record.exit_code is not None
        typer.echo(f"{source}: the run {'ended without a result' if ended else 'has no result yet'}", err=True)
    match output:
        case ReportOutput.JSON:
            typer.echo(json_report(found.measured, found.record))
        case ReportOutput.MARKDOWN:
            typer.echo(markdown.report(found.name, found.measured), nl=False)
        case ReportOutput.HTML:
            typer.echo(html.report(found.name, found.pages(), manifest=found.manifest()), nl=False)
        case ReportOutput.CSV:
            typer.echo(tidy.report(result for result, _ in found.measured), nl=False)
        case ReportOutput.TABLE:
            console().print(terminal.reports(found.measured))


def with_baseline(found: "Found", baseline: str | None, source: str) -> "Found":
    """The same against another baseline; raises typer.BadParameter where that was not compared."""
    from accelbench.verdict.rebase import NotComparableError

    try:
        return found if baseline is None else found.with_baseline(baseline)
    except NotComparableError as error:
        raise typer.BadParameter(f"{source}: {error}", param_hint="--baseline") from error
