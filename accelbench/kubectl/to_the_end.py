"""Runs followed one after the other, and what is left at the end of each: progress, the verdict, and an exit code."""

import time
from collections.abc import Sequence

import typer
from rich.text import Text

from accelbench.cli.console import console
from accelbench.cli.exits import Exit
from accelbench.cli.in_cluster import ClusterError
from accelbench.cli.json_report import json_report
from accelbench.cli.live import display
from accelbench.kubectl.apply import Applied
from accelbench.kubectl.follow import DeletedError, TimedOutError, follow
from accelbench.kubectl.gate import ending, exit_of
from accelbench.kubectl.options import RunOutput
from accelbench.kubectl.runs import found_of
from accelbench.kubectl.server import Manifest, Server
from accelbench.kubectl.signals import Signals, TerminatedError
from accelbench.report import terminal


class LostSightError(Exception):
    """The cluster cannot be asked any more about a run that goes on."""


def created(applied: Sequence[Applied], output: RunOutput, *, wait: bool) -> None:
    """Say what was created: on standard output where nothing else will stand there."""
    import json

    for each in applied:
        if output is RunOutput.NAME:
            typer.echo(each.name)
        elif output is RunOutput.JSON and not wait:
            typer.echo(json.dumps(each.run, ensure_ascii=False))
        if output is not RunOutput.NAME or not each.created:
            typer.echo(each.told(), err=wait or output is not RunOutput.TABLE or not each.created)


def to_the_end(server: Server, applied: Sequence[Applied], *, timeout: float | None, output: RunOutput) -> Exit:
    """Follow each run until it has finished and print its verdict; what ends this command ends no run."""
    until = None if timeout is None else time.monotonic() + timeout
    codes: list[Exit] = []
    left = list(applied)
    try:
        with Signals() as signals:
            while left:
                codes.append(_one(server, left[0].run, until, output, signals))
                left.pop(0)
    except TimedOutError:
        _go_on(left, "--timeout has passed")
        return Exit.TIMED_OUT
    except LostSightError as error:
        _go_on(left, f"error: {error}")
        return Exit.USAGE
    except KeyboardInterrupt:
        _go_on(left, "interrupted")
        return Exit.INTERRUPTED
    except TerminatedError:
        _go_on(left, "terminated")
        return Exit.TERMINATED
    return Exit.worst(codes)


def _one(server: Server, run: Manifest, until: float | None, output: RunOutput, signals: Signals) -> Exit:
    name = run["metadata"]["name"]
    drawn = console(stderr=True)

    def say(message: str) -> None:
        drawn.print(Text(f"benchmarkrun/{name}: {message}"), soft_wrap=True)

    try:
        with display(drawn) as shown:
            finished = follow(server, run, display=shown, say=say, until=until, signals=signals)
    except DeletedError as error:
        say(str(error))
        return Exit.NOT_MEASURED
    except ClusterError as error:
        raise LostSightError(str(error)) from error
    report(server, finished, output)
    code = exit_of(finished)
    if code is not Exit.SUCCESS:
        say(ending(finished))
    return Exit.NOT_MEASURED if code is None else code


def report(server: Server, run: Manifest, output: RunOutput) -> None:
    """The verdict of a finished run, as `accelbench run` prints it."""
    found = found_of(server, run)
    if output is RunOutput.JSON:
        typer.echo(json_report(found.measured, found.record))
    elif output is RunOutput.TABLE and found.measured:
        console().print(terminal.reports(found.measured))


def _go_on(left: Sequence[Applied], why: str) -> None:
    """Say that the runs go on, and how to see or end them."""
    for each in left:
        metadata = each.run["metadata"]
        name, where = metadata["name"], f"-n {metadata['namespace']}"
        typer.echo(
            f"{why}: benchmarkrun/{name} goes on\n"
            f"  to see it:    kubectl accelbench logs {name} -f {where}\n"
            f"  its verdict:  kubectl accelbench report {name} {where}\n"
            f"  to end it:    kubectl accelbench cancel {name} {where}",
            err=True,
        )
