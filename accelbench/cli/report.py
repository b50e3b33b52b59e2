"""Implement `accelbench report RESULT`: print the report of results on disk."""

from pathlib import Path

import click

from accelbench.terminal.options import ReportOutput, baseline_option, output_option
from accelbench.terminal.program import Command


@click.command(cls=Command)
@click.argument(
    "path",
    metavar="RESULT",
    type=click.Path(path_type=Path),
    help="A result: its JSON, a BenchmarkResult as kubectl prints it, or a directory of `run --out`.",
)
@baseline_option
@output_option(ReportOutput)
def report(path: Path, baseline: str | None, output: ReportOutput) -> None:
    """Show the report of an existing result."""
    from accelbench.local.results import read
    from accelbench.terminal.results import print_results, require_packages, with_baseline

    if not path.exists():
        raise click.BadParameter(f"{path} does not exist", param_hint="RESULT")
    require_packages(output)
    print_results(with_baseline(read(path), baseline, str(path)), output, str(path))
