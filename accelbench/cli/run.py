"""Implement `accelbench run FILE`: measure a manifest on this machine, and print its verdict."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from accelbench.local.exits import Exit, help_text
from accelbench.terminal.options import Output, assignments_option, output_option, target_argument, variants_option
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from accelbench.api.run import BenchmarkRun
    from accelbench.local.directory import RunDirectory
    from accelbench.local.interrupt import Signals
    from accelbench.local.run import RunOutcome

ACCEPT_NOISE = "measurement.acceptNoise=true"


def _in_range(wanted: int | None) -> int | None:
    import os

    usable = len(os.sched_getaffinity(0))
    if wanted is not None and not 1 <= wanted <= usable:
        raise click.BadParameter(f"{wanted}; this machine offers 1 to {usable}")
    return wanted


@click.command(cls=Command, epilog=help_text())
@target_argument
@variants_option
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
    callback=lambda _context, _parameter, wanted: _in_range(wanted),
    help="Use only N processors, idle ones first. Default: all.",
)
@output_option(Output, "How to print the result.")
def run(
    file: str,
    variants: Sequence[str],
    assignments: Sequence[str],
    out: Path | None,
    accept_noise: bool,
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
    changes = [*assignments, *([ACCEPT_NOISE] if accept_noise else []), *_target_assignments(targets)]
    runs = _read(file, variants, changes, compiled=bool(targets))
    _measure_all(runs, _reserve([run for run, _ in runs], out), file, processors, output)


def _target_assignments(targets: Sequence[str]) -> list[str]:
    """Return the assignments for `--target`; the profile is cpu, because compiling needs no device."""
    names = [name.strip() for target in targets for name in target.split(",") if name.strip()]
    return [f"accelerator.targets=[{', '.join(dict.fromkeys(names))}]", "accelerator.profile=cpu"] if names else []


def _read(
    file: str, variants: Sequence[str], changes: Sequence[str], *, compiled: bool
) -> "list[tuple[BenchmarkRun, str]]":
    """Read the runs of a file, each with its platform; raises InvalidSpecError if one cannot run here."""
    from accelbench.local.device import platform_of, require_a_framework, targeted, without_timed_expectations
    from accelbench.local.manifests import read_target

    runs = read_target(file, variants, changes)
    runs = tuple(targeted(without_timed_expectations(run) if compiled else run) for run in runs)
    platforms = [platform_of(run) for run in runs]
    require_a_framework(*runs)
    return list(zip(runs, platforms, strict=True))


def _reserve(runs: "Sequence[BenchmarkRun]", out: Path | None) -> "list[RunDirectory]":
    """Create a directory for each run; end the command if that is not possible."""
    from accelbench.local.run import reserve

    try:
        return reserve(runs, out)
    except OSError as error:
        click.echo(f"error: {error.filename}: {error.strerror}", err=True)
        sys.exit(Exit.USAGE)


def _measure_all(
    runs: "Sequence[tuple[BenchmarkRun, str]]",
    directories: "Sequence[RunDirectory]",
    file: str,
    processors: int | None,
    output: Output,
) -> None:
    """Measure and print one run after the other, and end with the exit code of the worst."""
    from accelbench.local.interrupt import Signals
    from accelbench.local.manifests import script_of

    codes: list[Exit] = []
    with Signals() as signals:
        for (run, platform), directory in zip(runs, directories, strict=True):
            outcome = _measure(run, platform, directory, signals, script_of(run, file), processors)
            _print(outcome, directory, output)
            codes.append(outcome.exit)
            if signals.received is not None:
                click.echo(f"interrupted: what was measured is kept{_not_reached(outcome)}", err=True)
                break
    sys.exit(Exit.worst(codes))


def _measure(
    run: "BenchmarkRun",
    platform: str,
    directory: "RunDirectory",
    signals: "Signals",
    script: Path | None,
    processors: int | None,
) -> "RunOutcome":
    """Measure one run with its progress on standard error; end the command if results cannot be written."""
    from accelbench.local.device import missing_frameworks
    from accelbench.local.run import measure
    from accelbench.report.live import display
    from accelbench.terminal.console import console

    for variant, reason in missing_frameworks(run).items():
        click.echo(f"warning: {variant} will fail: {reason}", err=True)
    try:
        with display(console(stderr=True)) as shown:
            return measure(
                run, platform, directory, signals=signals, display=shown, script=script, processors=processors
            )
    except OSError as error:
        click.echo(f"error: {error.filename or directory.path}: {error.strerror}", err=True)
        sys.exit(Exit.USAGE)


def _print(outcome: "RunOutcome", directory: "RunDirectory", output: Output) -> None:
    """Print the verdicts, write the HTML page, and name the directory of the results."""
    from accelbench.local.run import write_page
    from accelbench.report import terminal
    from accelbench.terminal.console import console
    from accelbench.terminal.results import json_report

    for line in (line for case in outcome.cases for line in case.trouble):
        click.echo(line, err=True)
    if output is Output.JSON:
        click.echo(json_report(outcome.measured, outcome.record))
    else:
        console().print(terminal.reports(outcome.measured))
    if (missing := write_page(directory)) is not None:
        click.echo(f"no report.html: {missing}", err=True)
    click.echo(f"results: {directory.path}", err=True)


def _not_reached(outcome: "RunOutcome") -> str:
    """Return the cases that were not started, for the end of a sentence."""
    started = {case.case.name for case in outcome.cases}
    missing = [name for name in outcome.record.cases if name not in started]
    return f"; not reached: {', '.join(missing)}" if missing else ""
