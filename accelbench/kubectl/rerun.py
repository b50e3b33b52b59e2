"""`kubectl accelbench rerun RUN`: a new run that asks what an old one asked."""

from typing import Annotated

import typer

from accelbench.kubectl.options import (
    RUN,
    Cluster,
    Context,
    Kubeconfig,
    Namespace,
    RunOutput,
    RunPrinted,
    Switch,
    Timeout,
    Wait,
    seconds,
)


def rerun(
    old: Annotated[str, typer.Argument(metavar="RUN", help=RUN)],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="The new run's name. Default: the cluster makes one up."),
    ] = None,
    wait: Wait = Switch.TRUE,
    timeout: Timeout = None,
    output: RunPrinted = RunOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Measure again what a run has measured.

    A new run of the same spec and series is followed to its end, as `run` does. What was done to the old run is left
    out: its status, that it was cancelled or suspended, and the marks of tools such as Helm and Argo CD.
    """
    limit = seconds(timeout)
    from accelbench.kubectl.again import again
    from accelbench.kubectl.apply import Applied, create
    from accelbench.kubectl.runs import run_named
    from accelbench.kubectl.to_the_end import created, to_the_end

    with Cluster(namespace, context, kubeconfig).ask() as server:
        applied = [Applied(create(server, again(run_named(server, old), name)), created=True)]
        waits = wait is Switch.TRUE
        created(applied, output, wait=waits)
        if waits:
            raise typer.Exit(to_the_end(server, applied, timeout=limit, output=output))
