"""Measure the runs of a suite on this machine, continue where that was interrupted, and report them on one page."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click

from accelbench.api.environment import CaseEnvironment
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.local import environments
from accelbench.local.directory import RunDirectory
from accelbench.local.exits import Exit
from accelbench.local.interrupt import Signals
from accelbench.local.run import RunOutcome, exit_for_results, write_page
from accelbench.local.run import measure as measure_run
from accelbench.local.suites.definition import PlannedRun
from accelbench.local.suites.directory import SuiteDirectory, SuiteRecord, reusable_results
from accelbench.plan.cases import count_cases
from accelbench.plan.time_left import MeasuredTime, time_left
from accelbench.report import html
from accelbench.report.live import display
from accelbench.report.suite import as_json, markdown, terminal
from accelbench.report.suite import html as suite_html
from accelbench.terminal.console import console
from accelbench.terminal.options import Output


def measure(
    directory: SuiteDirectory,
    name: str,
    description: str,
    planned_runs: Sequence[PlannedRun],
    *,
    again: bool,
    output: Output,
) -> NoReturn:
    """Measure the runs that have no result yet, or all of them `again`; report the suite, and exit with its code.

    The environments of all runs are installed before anything is measured.

    Args:
        directory: The directory of the suite's results.
        name: The title of the suite's page.
        description: Text about the suite below the title.
        planned_runs: The runs.
        again: True to measure runs that have results, too.
        output: How to print the report.
    """
    installed = [environments.install(planned.run, _print_progress) for planned in planned_runs]
    record = _write_record(directory, name, description, [planned.run for planned in planned_runs])
    known_results: dict[str, Mapping[str, Result]] = {}
    for planned, run_environments in zip(planned_runs, installed, strict=True):
        run_directory = directory.run_directory(planned.name)
        known_results[planned.name] = (
            {} if again else reusable_results(run_directory, planned, run_environments, _print_progress)
        )
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
    write_report(directory, record, output)
    sys.exit(Exit.worst(exit_codes))


def _write_record(directory: SuiteDirectory, name: str, description: str, runs: Sequence[BenchmarkRun]) -> SuiteRecord:
    """Write the suite's record into its directory, and return it; exit on an error."""
    try:
        return directory.write_record(name, description, runs)
    except OSError as error:
        _exit_on(error, directory.path)


def _time_left(planned_runs: Sequence[PlannedRun], known_results: Mapping[str, Mapping[str, Result]]) -> str:
    """Return an estimate in words of how long the cases without a result take."""
    open_limits: list[int] = []
    measured: list[MeasuredTime] = []
    for planned in planned_runs:
        limit = planned.run.spec.measurement.time_limit_seconds
        results = known_results[planned.name]
        open_limits += [limit] * (count_cases(planned.run) - len(results))
        measured += [MeasuredTime(float(result.overhead.get("total", 0)), limit) for result in results.values()]
    return str(time_left(open_limits, measured))


def _measure(
    planned: PlannedRun,
    environments: tuple[CaseEnvironment, ...],
    directory: RunDirectory,
    signals: Signals,
    known_results: Mapping[str, Result],
) -> RunOutcome:
    """Measure the cases of a run that have no result yet, write the run's page, and print problems and verdicts."""
    try:
        with display(console(stderr=True)) as live_display:
            outcome = measure_run(
                planned.run,
                planned.platform,
                directory,
                signals=signals,
                display=live_display,
                script=planned.script,
                earlier_results=known_results,
                environments=environments,
            )
        write_page(directory)  # nothing without the packages for HTML; `write_report` prints how to install them
    except OSError as error:
        _exit_on(error, directory.path)
    for case in outcome.cases:
        for line in case.problems:
            _print_progress(line)
    for result, _ in outcome.measured:
        for comparison in result.comparisons:
            _print_progress(f"  {comparison.headline}")
    return outcome


def write_report(directory: SuiteDirectory, record: SuiteRecord, output: Output) -> None:
    """Write the pages of a suite, and print its results.

    Without the packages that suite.html needs, write only suite.md, and print how to install them.
    """
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
