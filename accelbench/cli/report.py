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


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A result: its JSON, a BenchmarkResult as kubectl prints it, or a directory of `run --out`.",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(metavar="VARIANT", help="Compare with this variant instead; intervals then pay for all pairs."),
    ] = None,
    output: Annotated[ReportOutput, typer.Option("--output", "-o", help="How to print it.")] = ReportOutput.TABLE,
) -> None:
    """Show a result that was measured before."""
    from accelbench.cli.console import console
    from accelbench.cli.files import UnreadableResultError
    from accelbench.cli.json_report import json_report
    from accelbench.report import html, markdown, terminal, tidy

    if not path.exists():
        raise typer.BadParameter(f"there is no {path}", param_hint="RESULT")
    if output is ReportOutput.HTML and (what := html.missing()) is not None:
        typer.echo(f"error: {what}", err=True)
        raise typer.Exit(Exit.USAGE)
    try:
        found = _read(path, baseline)
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    if not found.measured:
        typer.echo(f"{path}: the run has no result yet", err=True)
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


def _read(path: Path, baseline: str | None) -> "Found":
    from accelbench.cli.results import read
    from accelbench.verdict.rebase import NotComparableError

    found = read(path)
    try:
        return found if baseline is None else found.with_baseline(baseline)
    except NotComparableError as error:
        raise typer.BadParameter(f"{path}: {error}", param_hint="--baseline") from error
