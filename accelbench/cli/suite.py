"""Implement `accelbench suite`: measure a list of manifests on this machine, and report their results together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from accelbench.local.exits import help_text
from accelbench.terminal.options import Output, assignments_option, output_option
from accelbench.terminal.program import Command, Group

suite_argument = click.argument(
    "suite_name",
    metavar="SUITE",
    help="A BenchmarkSuite's file (- is standard input), or the name of a suite that accelbench ships.",
)


@click.group(cls=Group)
def suite() -> None:
    """Measure a list of manifests, and report their results on one page."""


@suite.command("list", cls=Command)
@output_option(Output)
def list_(output: Output) -> None:
    """List the suites that accelbench ships."""
    import json

    from rich.table import Table

    from accelbench import figures
    from accelbench.cli import shipped_suites
    from accelbench.local.suites.definition import plan
    from accelbench.plan.cases import count_cases
    from accelbench.terminal.console import console

    suites: list[dict[str, Any]] = []
    for name in shipped_suites.names():
        shipped, source = shipped_suites.find(name)
        runs = [planned.run for planned in plan(shipped, source)]
        limit = sum(count_cases(run) * run.spec.measurement.time_limit_seconds for run in runs)
        suites.append({"name": name, "runs": len(runs), "limitSeconds": limit, "description": shipped.spec.description})
    if output is Output.JSON:
        click.echo(json.dumps(suites, indent=2))
        return
    table = Table("suite", "runs", "takes at most", "what it measures", box=None, pad_edge=False)
    for entry in suites:
        limit_text = figures.duration(entry["limitSeconds"])
        table.add_row(entry["name"], str(entry["runs"]), limit_text, entry["description"])
    console(listing=True).print(table)


@suite.command("run", cls=Command, epilog=help_text())
@suite_argument
@assignments_option
@click.option(
    "--results",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Where results are kept, a directory for each run. Default: results/suites/NAME.",
)
@click.option("--again", is_flag=True, help="Measure runs again that already have results.")
@output_option(Output, "How to print the report.")
def run(suite_name: str, assignments: Sequence[str], results: Path | None, *, again: bool, output: Output) -> None:
    """Measure the runs of a suite, except those already measured, and report them.

    A result counts if it is complete and of the same manifest, version of accelbench, source of the workload, and
    packages of its environments. Ctrl-C keeps what is measured; the same command continues.
    """
    from accelbench.cli import shipped_suites, suite_runs
    from accelbench.local.suites.definition import plan
    from accelbench.local.suites.directory import SuiteDirectory

    definition, source = shipped_suites.read(suite_name)
    planned_runs = plan(definition, source, assignments)
    directory = SuiteDirectory(results or Path("results", "suites", definition.name))
    suite_runs.measure(
        directory, definition.name, definition.spec.description, planned_runs, again=again, output=output
    )


@suite.command("report", cls=Command)
@click.argument(
    "path",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A directory that `accelbench suite run` or `accelbench versions` wrote.",
)
@output_option(Output)
def report(path: Path, output: Output) -> None:
    """Write a suite's pages, suite.html and suite.md, into its directory, and print its results."""
    from accelbench.cli import suite_runs
    from accelbench.local.suites.directory import SuiteDirectory

    directory = SuiteDirectory(path)
    suite_runs.write_report(directory, directory.load_record(), output)
