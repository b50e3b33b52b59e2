"""Implement `accelbench check FILE`: check that variants compute the right values, without timing them."""

import sys
from typing import TYPE_CHECKING

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
    from collections.abc import Sequence

    from accelbench.api.case import Case
    from accelbench.delivery.log import Event
    from accelbench.local.child import RunnerExit
    from accelbench.local.interrupt import Signals


@click.command(cls=Command, epilog=help_text())
@target_argument
@variants_option
@environments_option
@assignments_option
@output_option(Output, "How to print what was found.")
def check(
    file: str,
    variants: "Sequence[str]",
    environments: "Sequence[str]",
    assignments: "Sequence[str]",
    output: Output,
) -> None:
    """Check in seconds that variants compute what they should, before anything is timed.

    Each variant runs twice. Its outputs are compared with the reference, on other inputs too, and the compiled program
    is inspected. A script needs no manifest: it is checked with its default parameters.
    """
    import json

    from accelbench.local.check import check_cases
    from accelbench.local.device import missing_frameworks, platform_of, require_a_framework
    from accelbench.local.interrupt import Signals
    from accelbench.local.manifests import read_target, script_of
    from accelbench.report.launches import read_launches
    from accelbench.terminal import checked
    from accelbench.terminal.console import console

    runs = read_target(file, variants, assignments, environments)
    platforms = [platform_of(run) for run in runs]
    require_a_framework(*runs)
    exit_codes: list[Exit] = []
    reports = []
    with Signals() as signals:
        for run, platform in zip(runs, platforms, strict=True):
            for variant, advice in missing_frameworks(run).items():
                click.echo(f"warning: {variant} will fail: {advice}", err=True)
            cases = check_cases(
                run,
                platform,
                script_of(run, file),
                signals=signals,
                on_event=_print_launch,
                on_line=lambda line: click.echo(line, err=True),
            )
            for case, runner_exit in cases:
                result = runner_exit.result
                if result is None or not result.complete:
                    exit_codes.append(_explain_missing_result(case, runner_exit, signals))
                    continue
                launches = read_launches(runner_exit.launches)
                reports.append(checked.as_json(result, launches))
                exit_codes.append(checked.exit_code(checked.checked_variants(result)))
                if output is Output.TABLE:
                    console().print(checked.report(result, launches))
    if output is Output.JSON:
        click.echo(json.dumps(reports, indent=2, ensure_ascii=False))
    sys.exit(Exit.worst(exit_codes))


def _print_launch(event: "Event") -> None:
    """Print that a launch starts; ignore other events. A check launches each variant twice."""
    from accelbench.delivery.log import LaunchStarted

    if isinstance(event, LaunchStarted):
        click.echo(f"{event.variant}: run {event.round} of 2", err=True)


def _explain_missing_result(case: "Case", runner_exit: "RunnerExit", signals: "Signals") -> Exit:
    """Print why a case has no complete result, and return the exit code for that reason."""
    from accelbench.local.run import EXIT_OF_SIGNAL

    if signals.received is not None:
        click.echo("interrupted: nothing was checked", err=True)
        return EXIT_OF_SIGNAL[signals.received.name]
    status = f"{case.name}: the runner ended with status {runner_exit.code} and no result"
    for line in (*runner_exit.problems, status, *runner_exit.tail):
        click.echo(line, err=True)
    return Exit.INTERNAL
