"""Follow runs one after the other: show their progress, print their verdicts, return an exit code."""

import time
from collections.abc import Sequence

import click
from rich.text import Text

from accelbench.cluster_api.client import Client, Manifest
from accelbench.cluster_api.errors import ClusterError
from accelbench.kubectl.apply import AppliedRun
from accelbench.kubectl.follow import DeletedError, TimedOutError, follow
from accelbench.kubectl.gate import exit_of, outcome_text
from accelbench.kubectl.options import RunOutput
from accelbench.kubectl.runs import read_run_results
from accelbench.kubectl.signals import Signals, TerminatedError
from accelbench.local.exits import Exit
from accelbench.report import terminal
from accelbench.report.live import display
from accelbench.terminal.console import console
from accelbench.terminal.results import json_report


class FollowError(Exception):
    """Report that a run cannot be followed to its end; the run itself continues."""


def print_created(applied: Sequence[AppliedRun], output: RunOutput, *, wait: bool) -> None:
    """Print the runs in the chosen format.

    A description goes to standard error if the run existed before, or standard output has anything else.
    """
    import json

    for item in applied:
        if output is RunOutput.NAME:
            click.echo(item.name)
        elif output is RunOutput.JSON and not wait:
            click.echo(json.dumps(item.run, ensure_ascii=False))
        if output is not RunOutput.NAME or not item.created:
            click.echo(item.describe(), err=wait or output is not RunOutput.TABLE or not item.created)


def follow_runs(client: Client, applied: Sequence[AppliedRun], *, timeout: float | None, output: RunOutput) -> Exit:
    """Follow each run until it has finished, print its verdict, and return the worst exit code.

    If this command ends before, by `timeout` seconds, a signal or an error, the runs continue in the cluster.
    """
    until = None if timeout is None else time.monotonic() + timeout
    codes: list[Exit] = []
    unfinished = list(applied)
    try:
        with Signals() as signals:
            while unfinished:
                codes.append(_follow_one(client, unfinished[0].run, until, output, signals))
                unfinished.pop(0)
    except TimedOutError:
        _print_unfinished(unfinished, "--timeout has passed")
        return Exit.TIMED_OUT
    except FollowError as error:
        _print_unfinished(unfinished, f"error: {error}")
        return Exit.USAGE
    except KeyboardInterrupt:
        _print_unfinished(unfinished, "interrupted")
        return Exit.INTERRUPTED
    except TerminatedError:
        _print_unfinished(unfinished, "terminated")
        return Exit.TERMINATED
    return Exit.worst(codes)


def _follow_one(client: Client, run: Manifest, until: float | None, output: RunOutput, signals: Signals) -> Exit:
    """Follow a run to its end, print its verdict, and return its exit code; raises FollowError."""
    name = run["metadata"]["name"]
    screen = console(stderr=True)

    def print_message(message: str) -> None:
        screen.print(Text(f"benchmarkrun/{name}: {message}"), soft_wrap=True)

    try:
        with display(screen) as shown:
            finished = follow(client, run, display=shown, print_message=print_message, until=until, signals=signals)
    except DeletedError as error:
        print_message(error.message)
        return Exit.NOT_MEASURED
    except ClusterError as error:
        raise FollowError(error.message) from error
    _print_verdict(client, finished, output)
    code = exit_of(finished)
    if code is not Exit.SUCCESS:
        print_message(outcome_text(finished))
    return Exit.NOT_MEASURED if code is None else code


def _print_verdict(client: Client, run: Manifest, output: RunOutput) -> None:
    """Print the results of a finished run on standard output, in the chosen format; `name` prints none."""
    results = read_run_results(client, run)
    if output is RunOutput.JSON:
        click.echo(json_report(results.measured, results.record))
    elif output is RunOutput.TABLE and results.measured:
        console().print(terminal.reports(results.measured))


def _print_unfinished(unfinished: Sequence[AppliedRun], why: str) -> None:
    """Print that these runs continue, and the commands to see or end them."""
    for item in unfinished:
        metadata = item.run["metadata"]
        name, where = metadata["name"], f"-n {metadata['namespace']}"
        click.echo(
            f"{why}: benchmarkrun/{name} continues in the cluster\n"
            f"  its log:      kubectl accelbench logs {name} -f {where}\n"
            f"  its verdict:  kubectl accelbench report {name} {where}\n"
            f"  to end it:    kubectl accelbench cancel {name} {where}",
            err=True,
        )
