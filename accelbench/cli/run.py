"""Implement `accelbench run FILE`: measure a manifest on this machine, and print its verdict."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from accelbench.local.exits import Exit, help_text
from accelbench.terminal.options import (
    Output,
    assignments_option,
    environments_option,
    output_option,
    target_argument,
    variants_option,
)
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from accelbench.api.environment import CaseEnvironment
    from accelbench.api.run import BenchmarkRun
    from accelbench.local.directory import RunDirectory
    from accelbench.local.interrupt import Signals
    from accelbench.local.run import RunOutcome

ACCEPT_NOISE = "measurement.acceptNoise=true"
EXPLAIN = "measurement.explain=true"


def _check_processor_count(count: int | None) -> int | None:
    """Return the value of `--processors`; raise BadParameter if this process cannot use so many CPUs."""
    import os

    usable_cpus = len(os.sched_getaffinity(0))
    if count is not None and not 1 <= count <= usable_cpus:
        raise click.BadParameter(f"{count}; this machine offers 1 to {usable_cpus}")
    return count


@click.command(cls=Command, epilog=help_text())
@target_argument
@variants_option
@environments_option
@assignments_option
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="A new directory for the results. Default: results/NAME-TIME.",
)
@click.option(
    "--accept-noise",
    is_flag=True,
    help="Keep rounds that other load disturbs; the result is then marked noisy and has no verdict.",
)
@click.option(
    "--explain",
    is_flag=True,
    help="Launch each variant once more, under its framework's profiler, after all that is timed; the report shows the "
    "operations that take most.",
)
@click.option(
    "--target",
    "targets",
    metavar="TARGET",
    multiple=True,
    help="Compile for this instead of measuring: h100x8, v5e-16; several with commas, or repeat the option. "
    "The device need not be here.",
)
@click.option(
    "--processors",
    metavar="N",
    type=int,
    callback=lambda _context, _parameter, count: _check_processor_count(count),
    help="Use only N processors, idle ones first. Default: all.",
)
@output_option(Output, "How to print the result.")
def run(
    file: str,
    variants: Sequence[str],
    environments: Sequence[str],
    assignments: Sequence[str],
    out: Path | None,
    accept_noise: bool,
    explain: bool,
    targets: Sequence[str],
    processors: int | None,
    output: Output,
) -> None:
    """Measure a manifest, a script or a workload on this machine, and report which is faster.

    With --target nothing is measured: the report shows whether the programs fit the target's memory, and what they
    consist of.

    Progress goes to standard error, the verdict to standard output, everything else to the results' directory. Ctrl-C
    ends the measurement and keeps what was measured; a second one kills it.
    """
    all_assignments = [*assignments, *_target_assignments(targets)]
    if accept_noise:
        all_assignments.append(ACCEPT_NOISE)
    if explain:
        all_assignments.append(EXPLAIN)
    prepared_runs = _prepare_runs(file, variants, environments, all_assignments, compiles_only=bool(targets))
    directories = _create_directories([prepared.run for prepared in prepared_runs], out)
    _measure_all(prepared_runs, directories, file, processors, output)


class _PreparedRun(NamedTuple):
    """Hold a run that this machine can measure."""

    run: "BenchmarkRun"
    platform: str
    """Name of the platform of its profile."""
    environments: "tuple[CaseEnvironment, ...]"
    """Its environments, as they are installed."""


def _target_assignments(targets: Sequence[str]) -> list[str]:
    """Return `PATH=VALUE` assignments that make a run compile for the devices of `--target`, and measure nothing."""
    names = [name.strip() for target in targets for name in target.split(",") if name.strip()]
    if not names:
        return []
    # Compiling needs no device, so the profile is cpu.
    return [f"accelerator.targets=[{', '.join(dict.fromkeys(names))}]", "accelerator.profile=cpu"]


def _prepare_runs(
    file: str, variants: Sequence[str], environments: Sequence[str], assignments: Sequence[str], *, compiles_only: bool
) -> list[_PreparedRun]:
    """Read the runs of a file, find out whether they can be measured here, and install their environments.

    With `compiles_only`, drop the expectations of measured times. Raises an error, which ends the command, if a
    run cannot be measured.
    """
    from accelbench.local import environments as installation
    from accelbench.local.device import (
        platform_of,
        prepare_compilation,
        require_a_framework,
        without_timed_expectations,
    )
    from accelbench.local.manifests import read_target

    runs = list(read_target(file, variants, assignments, environments))
    if compiles_only:
        runs = [without_timed_expectations(run) for run in runs]
    runs = [prepare_compilation(run) for run in runs]
    platforms = [platform_of(run) for run in runs]
    require_a_framework(*runs)
    installed = [installation.install(run, lambda line: click.echo(line, err=True)) for run in runs]
    return list(map(_PreparedRun, runs, platforms, installed))


def _create_directories(runs: "Sequence[BenchmarkRun]", out: Path | None) -> "list[RunDirectory]":
    """Create a directory for the results of each run; exit on an error.

    It is `out` for a single run, and a directory in `out` for each of several; without `out`, a directory in `results`.
    """
    from accelbench.local.run import reserve

    try:
        return reserve(runs, out)
    except OSError as error:
        click.echo(f"error: {error.filename}: {error.strerror}", err=True)
        sys.exit(Exit.USAGE)


def _measure_all(
    prepared_runs: Sequence[_PreparedRun],
    directories: "Sequence[RunDirectory]",
    file: str,
    processors: int | None,
    output: Output,
) -> None:
    """Measure and print the runs, up to an interruption, and exit with the worst exit code."""
    from accelbench.local.interrupt import Signals
    from accelbench.local.manifests import script_of

    exit_codes: list[Exit] = []
    with Signals() as signals:
        for prepared, directory in zip(prepared_runs, directories, strict=True):
            outcome = _measure(prepared, directory, signals, script_of(prepared.run, file), processors)
            _print_outcome(outcome, directory, output)
            exit_codes.append(outcome.exit)
            if signals.received is not None:
                message = "interrupted: what was measured is kept"
                not_started = _cases_not_started(outcome)
                if not_started:
                    message += f"; not reached: {', '.join(not_started)}"
                click.echo(message, err=True)
                break
    sys.exit(Exit.worst(exit_codes))


def _measure(
    prepared: _PreparedRun,
    directory: "RunDirectory",
    signals: "Signals",
    script: Path | None,
    processors: int | None,
) -> "RunOutcome":
    """Measure one run, and show its progress on standard error; exit if its results cannot be written."""
    from accelbench.local.device import missing_frameworks
    from accelbench.local.run import measure
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    for variant, reason in missing_frameworks(prepared.run).items():
        click.echo(f"warning: {variant} will fail: {reason}", err=True)
    try:
        with display(console(stderr=True)) as live_display:
            return measure(
                prepared.run,
                prepared.platform,
                directory,
                signals=signals,
                display=live_display,
                script=script,
                processors=processors,
                environments=prepared.environments,
            )
    except OSError as error:
        click.echo(f"error: {error.filename or directory.path}: {error.strerror}", err=True)
        sys.exit(Exit.USAGE)


def _print_outcome(outcome: "RunOutcome", directory: "RunDirectory", output: Output) -> None:
    """Print a run's problems and verdicts, and write its HTML page."""
    from accelbench.local.run import write_page
    from accelbench.report import terminal
    from accelbench.terminal.console import console
    from accelbench.terminal.results import json_report

    for case in outcome.cases:
        for line in case.problems:
            click.echo(line, err=True)
    if output is Output.JSON:
        click.echo(json_report(outcome.measured, outcome.record))
    else:
        console().print(terminal.reports(outcome.measured))
    install_advice = write_page(directory)
    if install_advice is not None:
        click.echo(f"no report.html: {install_advice}", err=True)
    click.echo(f"results: {directory.path}", err=True)


def _cases_not_started(outcome: "RunOutcome") -> list[str]:
    """Return the names of the run's cases that were not started."""
    started_cases = {case.case.name for case in outcome.cases}
    return [name for name in outcome.record.cases if name not in started_cases]
