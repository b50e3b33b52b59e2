"""`accelbench run FILE`: a manifest measured on this machine, ending in a verdict."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accelbench.local.exits import Exit
from accelbench.terminal.options import TARGET, Assignments, Output, Variants

if TYPE_CHECKING:
    from accelbench.local.run import RunOutcome

ACCEPT_NOISE = "measurement.acceptNoise=true"


def _available(wanted: int | None) -> int | None:
    import os

    there = len(os.sched_getaffinity(0))
    if wanted is not None and not 1 <= wanted <= there:
        raise typer.BadParameter(f"{wanted}; this machine offers 1 to {there}")
    return wanted


def _compile_for(targets: list[str]) -> list[str]:
    """The assignments that `--target` stands for: what is compiled needs no device."""
    names = [name.strip() for each in targets for name in each.split(",") if name.strip()]
    return [f"accelerator.targets=[{', '.join(dict.fromkeys(names))}]", "accelerator.profile=cpu"] if names else []


def run(
    file: Annotated[str, typer.Argument(metavar="FILE", help=TARGET)],
    variants: Variants = None,
    assignments: Assignments = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="A new directory for the results. Default: results/NAME-TIME."),
    ] = None,
    accept_noise: Annotated[
        bool,
        typer.Option(
            "--accept-noise",
            help="Keep rounds that other load disturbs; the result then says noisy and has no verdict.",
        ),
    ] = False,
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            metavar="TARGET",
            help="Compile for this instead of measuring: h100x8, v5e-16; several with commas, or repeat the option. "
            "The device need not be here.",
        ),
    ] = None,
    processors: Annotated[
        int | None,
        typer.Option(metavar="N", help="Use only N processors, idle ones first. Default: all.", callback=_available),
    ] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print the result.")] = Output.TABLE,
) -> None:
    """Measure a manifest, a script or a workload on this machine, and say which is faster.

    With --target nothing is measured: the report says whether the programs fit the target's memory, and what they
    consist of.

    Progress goes to standard error, the verdict to standard output, everything else to the results' directory. Ctrl-C
    ends the measurement and keeps what was measured; a second one kills it.
    """
    from accelbench.local.device import (
        missing_frameworks,
        platform_of,
        require_a_framework,
        targeted,
        without_what_runs,
    )
    from accelbench.local.errors import InvalidSpecError, OccupiedError
    from accelbench.local.interrupt import Signals
    from accelbench.local.manifests import read_target, script_of
    from accelbench.local.run import measure, reserve, write_page
    from accelbench.report import terminal
    from accelbench.report.live import display
    from accelbench.terminal.console import console
    from accelbench.terminal.results import json_report

    try:
        changes = [*(assignments or []), *([ACCEPT_NOISE] if accept_noise else []), *_compile_for(targets or [])]
        runs = read_target(file, variants or (), changes)
        runs = tuple(targeted(without_what_runs(each) if targets else each) for each in runs)
        platforms = [platform_of(each) for each in runs]
        require_a_framework(*runs)
    except InvalidSpecError as error:
        typer.echo(error.explained(), err=True)
        raise typer.Exit(Exit.INVALID_SPEC) from error

    try:
        directories = reserve(runs, out)
    except (OccupiedError, OSError) as error:
        what = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) else str(error)
        typer.echo(f"error: {what}", err=True)
        raise typer.Exit(Exit.USAGE) from error

    codes: list[Exit] = []
    with Signals() as signals:
        for each, platform, directory in zip(runs, platforms, directories, strict=True):
            for variant, what in missing_frameworks(each).items():
                typer.echo(f"warning: {variant} will fail: {what}", err=True)
            try:
                with display(console(stderr=True)) as shown:
                    outcome = measure(
                        each,
                        platform,
                        directory,
                        signals=signals,
                        display=shown,
                        script=script_of(each, file),
                        processors=processors,
                    )
            except OSError as error:
                typer.echo(f"error: {error.filename or directory.path}: {error.strerror}", err=True)
                raise typer.Exit(Exit.USAGE) from error
            codes.append(outcome.exit)
            for line in (line for case in outcome.cases for line in case.trouble):
                typer.echo(line, err=True)
            if output is Output.JSON:
                typer.echo(json_report(outcome.measured, outcome.record))
            else:
                console().print(terminal.reports(outcome.measured))
            if (absent := write_page(directory)) is not None:
                typer.echo(f"no report.html: {absent}", err=True)
            typer.echo(f"results: {directory.path}", err=True)
            if signals.received is not None:
                typer.echo(f"interrupted: what was measured is kept{_not_reached(outcome)}", err=True)
                break
    raise typer.Exit(Exit.worst(codes))


def _not_reached(outcome: "RunOutcome") -> str:
    """The cases that were not begun, for the end of a sentence."""
    begun = {each.case.name for each in outcome.cases}
    left = [name for name in outcome.record.cases if name not in begun]
    return f"; not reached: {', '.join(left)}" if left else ""
