"""`accelbench report RESULT`: a verdict once more, from what a run left on disk."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from accelbench.cli.exits import Exit


class ReportOutput(StrEnum):
    """Text for people, JSON for scripts, Markdown for a page."""

    TABLE = "table"
    JSON = "json"
    MARKDOWN = "markdown"


def report(
    path: Annotated[Path, typer.Argument(metavar="RESULT", help="A result's JSON, or a directory of `run --out`.")],
    output: Annotated[ReportOutput, typer.Option("--output", "-o", help="How to print it.")] = ReportOutput.TABLE,
) -> None:
    """Show a result that was measured before."""
    from rich.console import Console

    from accelbench.cli.files import RunDirectory, UnreadableResultError, load_result
    from accelbench.cli.json_report import json_report
    from accelbench.expectations import evaluate
    from accelbench.report import markdown, terminal

    if not path.exists():
        raise typer.BadParameter(f"there is no {path}", param_hint="RESULT")
    try:
        record, results = RunDirectory(path).load() if path.is_dir() else (None, (load_result(path),))
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    expectations = record.run.spec.expectations if record else ()
    measured = [(result, evaluate(expectations, result)) for result in results]
    if not measured:
        typer.echo(f"{path}: the run has no result yet", err=True)
    if output is ReportOutput.JSON:
        typer.echo(json_report(measured, record))
    elif output is ReportOutput.MARKDOWN:
        name = record.run.metadata.name if record else results[0].case.origin.run
        typer.echo(markdown.report(name, measured), nl=False)
    else:
        Console().print(terminal.reports(measured))
