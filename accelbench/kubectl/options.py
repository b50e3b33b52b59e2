"""Options that the plugin's commands share, named as kubectl names its own; and the server that they lead to."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from accelbench.local.exits import Exit

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", metavar="NAMESPACE", help="Default: the context's namespace.")
]
Context = Annotated[
    str | None,
    typer.Option("--context", metavar="NAME", help="A context of your kubeconfig; default: the current one."),
]
Kubeconfig = Annotated[
    Path | None,
    typer.Option("--kubeconfig", metavar="FILE", help="Default: $KUBECONFIG, then ~/.kube/config."),
]
RUN = "A BenchmarkRun's name."


UNPROCESSABLE = 422


class Switch(StrEnum):
    """As kubectl writes it: `--wait=false`."""

    TRUE = "true"
    FALSE = "false"


Wait = Annotated[Switch, typer.Option("--wait", help="false: return once the run is created.")]
Timeout = Annotated[
    str | None,
    typer.Option(
        "--timeout", metavar="DURATION", help="Follow for this long at most: 90s, 30m or 1h30m. Default: to the end."
    ),
]


class RunOutput(StrEnum):
    """Text for people, JSON for scripts, or what a script needs to go on with the run."""

    TABLE = "table"
    JSON = "json"
    NAME = "name"


RunPrinted = Annotated[
    RunOutput,
    typer.Option("--output", "-o", help="How to print the result; name prints only the created run's name."),
]


@dataclass(frozen=True)
class Cluster:
    """Which cluster, and which of its namespaces, as the options say."""

    namespace: str | None
    context: str | None
    kubeconfig: Path | None

    @contextmanager
    def ask(self) -> Iterator["Client"]:
        """The API server; what goes wrong with it, or with a manifest, ends the command with its message and code."""
        from accelbench.cluster_api.client import connect
        from accelbench.cluster_api.errors import ApiError, ClusterError
        from accelbench.local.errors import InvalidSpecError

        try:
            with connect(self.context, self.kubeconfig, self.namespace) as client:
                yield client
        except InvalidSpecError as error:
            typer.echo(error.explained(), err=True)
            raise typer.Exit(Exit.INVALID_SPEC) from error
        except ClusterError as error:
            typer.echo(f"error: {error.message}", err=True)
            invalid = isinstance(error, ApiError) and error.status == UNPROCESSABLE
            raise typer.Exit(Exit.INVALID_SPEC if invalid else Exit.USAGE) from error


UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds(duration: str | None) -> float | None:
    """As Go writes durations: `1h30m`, `90s`; None where there is none. Raises typer.BadParameter."""
    import re

    if duration is None:
        return None
    if not re.fullmatch(r"(\d+(\.\d+)?(h|ms|m|s))+", duration):
        what = f"{duration}: write numbers with units, such as 90s, 30m or 1h30m"
        raise typer.BadParameter(what, param_hint="--timeout")
    return sum(float(number) * UNITS[unit] for number, _, unit in re.findall(r"(\d+(\.\d+)?)(h|ms|m|s)", duration))
