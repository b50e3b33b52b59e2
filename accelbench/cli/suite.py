"""Implement `accelbench suite`: measure a list of manifests on this machine, and report their results together."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from accelbench.local.exits import Exit, help_text
from accelbench.terminal.options import Output, assignments_option, output_option
from accelbench.terminal.program import Command, Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from accelbench.api.environment import CaseEnvironment
    from accelbench.api.result import Result
    from accelbench.local.directory import RunDirectory
    from accelbench.local.interrupt import Signals
    from accelbench.local.run import RunOutcome
    from accelbench.local.suites.definition import BenchmarkSuite, PlannedRun
    from accelbench.local.suites.directory import SuiteDirectory, SuiteRecord

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

    suites = []
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
        limit_text = figures.duration(float(str(entry["limitSeconds"])))
        table.add_row(str(entry["name"]), str(entry["runs"]), limit_text, str(entry["description"]))
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
def run(suite_name: str, assignments: "Sequence[str]", results: Path | None, *, again: bool, output: Output) -> None:
    """Measure the runs of a suite, except those already measured, and report them.

    A result counts if it is complete and of the same manifest, version of accelbench and source of the workload. Ctrl-C
    keeps what is measured; the same command continues.
    """
    from accelbench.local import environments
    from accelbench.local.interrupt import Signals
    from accelbench.local.run import exit_for_results
    from accelbench.local.suites.definition import plan
    from accelbench.local.suites.directory import SuiteDirectory, reusable_results
    from accelbench.plan.cases import count_cases

    definition, source = _read(suite_name)
    planned_runs = plan(definition, source, assignments)
    installed = [environments.install(planned.run, _print_progress) for planned in planned_runs]
    directory = SuiteDirectory(results or Path("results", "suites", definition.name))
    record = _write_record(directory, definition, planned_runs)
    known_results: dict[str, Mapping[str, Result]] = {}
    for planned in planned_runs:
        run_directory = directory.run_directory(planned.name)
        known_results[planned.name] = {} if again else reusable_results(run_directory, planned, _print_progress)
    exit_codes: list[Exit] = []
    with Signals() as signals:
        for number, (planned, run_environments) in enumerate(zip(planned_runs, installed, strict=True), 1):
            position = f"{number} of {len(planned_runs)}: {planned.name}"
            run_results = known_results[planned.name]
            if len(run_results) == count_cases(planned.run):
                _print_progress(f"{position}: already measured (--again measures it again)")
                exit_codes.append(exit_for_results(planned.run, run_results.values()))
                continue
            _print_progress(f"{position}; {_time_left(planned_runs, known_results)}")
            run_directory = directory.run_directory(planned.name)
            outcome = _measure(planned, run_environments, run_directory, signals, run_results)
            exit_codes.append(outcome.exit)
            known_results[planned.name] = {result.case.name: result for result, _ in outcome.measured}
            if signals.received is not None:
                _print_progress("interrupted: what was measured is kept, and the same command continues")
                break
    _report(directory, record, output)
    sys.exit(Exit.worst(exit_codes))


@suite.command("report", cls=Command)
@click.argument(
    "path", metavar="DIR", type=click.Path(path_type=Path), help="A directory that `accelbench suite run` wrote."
)
@output_option(Output)
def report(path: Path, output: Output) -> None:
    """Write a suite's pages, suite.html and suite.md, into its directory, and print its results."""
    from accelbench.local.suites.directory import SuiteDirectory

    directory = SuiteDirectory(path)
    _report(directory, directory.load_record(), output)


def _read(name: str) -> "tuple[BenchmarkSuite, str]":
    """Return the suite with this path or name, and the path that its entries are relative to."""
    from accelbench.cli import shipped_suites
    from accelbench.local.errors import UsageError
    from accelbench.local.manifests import STANDARD_INPUT
    from accelbench.local.suites.definition import read_suite
    from accelbench.problem import suggest_name

    if name == STANDARD_INPUT or Path(name).is_file():
        return read_suite(name), name
    if name in shipped_suites.names():
        return shipped_suites.find(name)
    suggestion = suggest_name(name, shipped_suites.names())
    raise UsageError(f"cannot read {name}: no such file, and no suite has this name; {suggestion}", "SUITE")


def _write_record(
    directory: "SuiteDirectory", definition: "BenchmarkSuite", planned_runs: "Sequence[PlannedRun]"
) -> "SuiteRecord":
    """Write the suite's record into its directory, and return it; exit on an error."""
    runs = [planned.run for planned in planned_runs]
    try:
        return directory.write_record(definition.name, definition.spec.description, runs)
    except OSError as error:
        _exit_on(error, directory.path)


def _time_left(planned_runs: "Sequence[PlannedRun]", known_results: "Mapping[str, Mapping[str, Result]]") -> str:
    """Return an estimate in words of how long the cases without a result take."""
    from accelbench.plan.cases import count_cases
    from accelbench.plan.time_left import MeasuredTime, time_left

    open_limits: list[int] = []
    measured: list[MeasuredTime] = []
    for planned in planned_runs:
        limit = planned.run.spec.measurement.time_limit_seconds
        results = known_results[planned.name]
        open_limits += [limit] * (count_cases(planned.run) - len(results))
        measured += [MeasuredTime(float(result.overhead.get("total", 0)), limit) for result in results.values()]
    return str(time_left(open_limits, measured))


def _measure(
    planned: "PlannedRun",
    environments: "tuple[CaseEnvironment, ...]",
    directory: "RunDirectory",
    signals: "Signals",
    known_results: "Mapping[str, Result]",
) -> "RunOutcome":
    """Measure the cases of a run that have no result yet, write the run's page, and print problems."""
    from accelbench.local.run import measure, write_page
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    try:
        with display(console(stderr=True)) as live_display:
            outcome = measure(
                planned.run,
                planned.platform,
                directory,
                signals=signals,
                display=live_display,
                script=planned.script,
                earlier_results=known_results,
                environments=environments,
            )
        write_page(directory)
    except OSError as error:
        _exit_on(error, directory.path)
    for case in outcome.cases:
        for line in case.problems:
            _print_progress(line)
    for result, _ in outcome.measured:
        for comparison in result.comparisons:
            _print_progress(f"  {comparison.headline}")
    return outcome


def _report(directory: "SuiteDirectory", record: "SuiteRecord", output: Output) -> None:
    """Write the pages of a suite, and print its results."""
    from accelbench.report import html
    from accelbench.report.suite import as_json, markdown, terminal
    from accelbench.report.suite import html as suite_html
    from accelbench.terminal.console import console

    measured_suite = directory.load(record, _print_progress)
    install_advice = html.install_hint()
    page = suite_html.report(measured_suite) if install_advice is None else None
    try:
        directory.write_report(page, markdown.report(measured_suite))
    except OSError as error:
        _exit_on(error, directory.path)
    if output is Output.JSON:
        click.echo(as_json.report(measured_suite))
    else:
        console().print(terminal.report(measured_suite))
    if install_advice is not None:
        _print_progress(f"no suite.html: {install_advice}")
    _print_progress(f"results: {directory.path}")


def _print_progress(line: str) -> None:
    """Print a line to standard error."""
    click.echo(line, err=True)


def _exit_on(error: OSError, path: Path) -> NoReturn:
    """Print why results cannot be written, and exit."""
    click.echo(f"error: {error.filename or path}: {error.strerror}", err=True)
    sys.exit(Exit.USAGE)
