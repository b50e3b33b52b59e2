"""Follow runs one after the other: show their progress, print their verdicts, and return an exit code."""

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
    """Report that this command cannot follow a run to its end; the run continues."""


def print_applied_runs(applied_runs: Sequence[AppliedRun], output: RunOutput, *, wait: bool) -> None:
    """Print each run in the format `output`, and whether it was created or existed before.

    With `wait`, the format JSON leaves out the run, because the results follow.
    """
    import json

    for applied_run in applied_runs:
        if output is RunOutput.NAME:
            click.echo(applied_run.kubectl_name)
        elif output is RunOutput.JSON and not wait:
            click.echo(json.dumps(applied_run.run, ensure_ascii=False))
        name_says_all = output is RunOutput.NAME and applied_run.was_created
        if not name_says_all:
            # The message goes to standard error if standard output is for something else.
            goes_to_output = output is RunOutput.TABLE and applied_run.was_created and not wait
            click.echo(applied_run.describe(), err=not goes_to_output)


def follow_runs(
    client: Client, applied_runs: Sequence[AppliedRun], *, timeout_seconds: float | None, output: RunOutput
) -> Exit:
    """Follow all runs to their end, one after the other, and return the worst exit code.

    After `timeout_seconds`, which are for all runs together, an error or a signal, the unfinished runs are listed: they
    continue in the cluster. The exit code is then that of the timeout, the error or the signal.
    """
    deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
    codes: list[Exit] = []
    unfinished_runs = list(applied_runs)
    try:
        with Signals() as signals:
            while unfinished_runs:
                codes.append(_follow_run(client, unfinished_runs[0].run, deadline, output, signals))
                unfinished_runs.pop(0)
    except TimedOutError:
        _print_unfinished(unfinished_runs, "--timeout has passed")
        return Exit.TIMED_OUT
    except FollowError as error:
        _print_unfinished(unfinished_runs, f"error: {error}")
        return Exit.USAGE
    except KeyboardInterrupt:
        _print_unfinished(unfinished_runs, "interrupted")
        return Exit.INTERRUPTED
    except TerminatedError:
        _print_unfinished(unfinished_runs, "terminated")
        return Exit.TERMINATED
    return Exit.worst(codes)


def _follow_run(client: Client, run: Manifest, deadline: float | None, output: RunOutput, signals: Signals) -> Exit:
    """Follow a run to its end, print its results, and return its exit code.

    `deadline` is a time of `time.monotonic`. Raises FollowError after an error of the API server, and TimedOutError.
    """
    name = run["metadata"]["name"]
    screen = console(stderr=True)

    def print_message(message: str) -> None:
        """Print a message about the run to standard error."""
        screen.print(Text(f"benchmarkrun/{name}: {message}"), soft_wrap=True)

    try:
        with display(screen) as live_display:
            finished_run = follow(
                client, run, display=live_display, print_message=print_message, deadline=deadline, signals=signals
            )
    except DeletedError as error:
        print_message(error.message)
        return Exit.NOT_MEASURED
    except ClusterError as error:
        raise FollowError(error.message) from error
    _print_results(client, finished_run, output)
    code = exit_of(finished_run)
    if code is not Exit.SUCCESS:
        print_message(outcome_text(finished_run))
    return Exit.NOT_MEASURED if code is None else code  # None is for the type checker: the run has finished


def _print_results(client: Client, run: Manifest, output: RunOutput) -> None:
    """Print the results of a finished run as JSON or as tables."""
    results = read_run_results(client, run)
    if output is RunOutput.JSON:
        click.echo(json_report(results.measured, results.record))
    elif output is RunOutput.TABLE and results.measured:
        console().print(terminal.reports(results.measured))


def _print_unfinished(unfinished_runs: Sequence[AppliedRun], reason: str) -> None:
    """Print that these runs continue, with commands to show or end them; `reason` is why this command ends now."""
    for applied_run in unfinished_runs:
        metadata = applied_run.run["metadata"]
        name, namespace_option = metadata["name"], f"-n {metadata['namespace']}"
        click.echo(
            f"{reason}: benchmarkrun/{name} continues in the cluster\n"
            f"  its log:      kubectl accelbench logs {name} -f {namespace_option}\n"
            f"  its verdict:  kubectl accelbench report {name} {namespace_option}\n"
            f"  to end it:    kubectl accelbench cancel {name} {namespace_option}",
            err=True,
        )
