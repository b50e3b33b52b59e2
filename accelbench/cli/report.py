"""`accelbench report RESULT`: a verdict once more, from what a run left on disk."""

from pathlib import Path
from typing import Annotated

import typer

from accelbench.local.exits import Exit
from accelbench.terminal.options import Baseline, PrintedReport, ReportOutput


def report(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="RESULT",
            help="A result: its JSON, a BenchmarkResult as kubectl prints it, or a directory of `run --out`.",
        ),
    ],
    baseline: Baseline = None,
    output: PrintedReport = ReportOutput.TABLE,
) -> None:
    """Show the report of an existing result."""
    from accelbench.local.errors import UnreadableResultError
    from accelbench.local.results import read
    from accelbench.terminal.results import print_results, require_packages, with_baseline

    if not path.exists():
        raise typer.BadParameter(f"{path} does not exist", param_hint="RESULT")
    require_packages(output)
    try:
        loaded = with_baseline(read(path), baseline, str(path))
    except UnreadableResultError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error
    print_results(loaded, output, str(path))
