"""Define the options that the plugin's commands share; they have the same names as in kubectl."""

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from accelbench.kubectl import complete
from accelbench.local.exits import Exit
from accelbench.terminal.options import output_option

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

Function = Callable[..., None]
RUN_HELP = "A BenchmarkRun's name."
UNPROCESSABLE = 422
"""HTTP status with which the API server refuses an invalid object."""
UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


class RunOutput(StrEnum):
    """Name the formats of `run` and `rerun`: for people, for scripts, or the run's name for another command."""

    TABLE = "table"
    JSON = "json"
    NAME = "name"


@dataclass(frozen=True)
class Cluster:
    """Hold the options that choose a cluster and a namespace."""

    namespace: str | None
    context: str | None
    kubeconfig: Path | None

    @contextmanager
    def connect(self) -> Iterator["Client"]:
        """Connect to the API server; exit with a message on an error."""
        from accelbench.cluster_api.client import connect
        from accelbench.cluster_api.errors import ApiError, ClusterError

        try:
            with connect(self.context, self.kubeconfig, self.namespace) as client:
                yield client
        except ClusterError as error:
            click.echo(f"error: {error.message}", err=True)
            is_invalid_object = isinstance(error, ApiError) and error.status == UNPROCESSABLE
            sys.exit(Exit.INVALID_SPEC if is_invalid_object else Exit.USAGE)


namespace_option = click.option(
    "--namespace",
    "-n",
    metavar="NAMESPACE",
    help="Default: the context's namespace.",
    shell_complete=complete.namespaces,
)
context_option = click.option(
    "--context",
    metavar="NAME",
    help="A context of your kubeconfig; default: the current one.",
    shell_complete=complete.contexts,
)
kubeconfig_option = click.option(
    "--kubeconfig",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Default: $KUBECONFIG, then ~/.kube/config.",
)


def cluster_options(command: Function) -> Function:
    """Add --namespace, --context and --kubeconfig to a command, which gets them as its argument `cluster`."""

    @namespace_option
    @context_option
    @kubeconfig_option
    @functools.wraps(command)
    def with_cluster(namespace: str | None, context: str | None, kubeconfig: Path | None, **arguments: Any) -> None:
        """Call the command with the three options as a `Cluster`, and with its own arguments."""
        command(cluster=Cluster(namespace, context, kubeconfig), **arguments)

    return with_cluster


def run_argument(name: str) -> Callable[[Function], Function]:
    """Return a decorator that adds the argument RUN to a command as `name`; the shell completes the names of runs."""
    return click.argument(name, metavar="RUN", help=RUN_HELP, shell_complete=complete.runs)


def follow_options(command: Function) -> Function:
    """Add --wait, --timeout and --output to a command that can follow runs."""
    output = output_option(RunOutput, "How to print the result; name prints only the created run's name.")
    timeout = click.option(
        "--timeout",
        metavar="DURATION",
        callback=lambda _context, _parameter, duration: parse_duration(duration),
        help="Follow for this long at most: 90s, 30m or 1h30m. Default: to the end.",
    )
    wait = click.option(
        "--wait",
        type=click.Choice(["true", "false"]),
        default="true",
        callback=lambda _context, _parameter, value: value == "true",
        help="false: return once the run is created.",
    )
    return wait(timeout(output(command)))  # `--help` lists the outermost option first


def parse_duration(duration: str | None) -> float | None:
    """Return the seconds of a duration such as `1h30m` or `90s`; None for None. Raises BadParameter for other text."""
    import re

    if duration is None:
        return None
    # `ms` comes before `m`, because the first alternative that matches is taken.
    number_with_unit = r"(\d+(?:\.\d+)?)(h|ms|m|s)"
    if not re.fullmatch(f"({number_with_unit})+", duration):
        raise click.BadParameter(f"{duration}: write numbers with units, such as 90s, 30m or 1h30m")
    return sum(float(number) * UNIT_SECONDS[unit] for number, unit in re.findall(number_with_unit, duration))
