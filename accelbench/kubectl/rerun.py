"""Implement `kubectl accelbench rerun RUN`: create a new run with the spec of an existing one."""

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
        typer.Option("--name", metavar="NAME", help="The new run's name. Default: the cluster chooses one."),
    ] = None,
    wait: Wait = Switch.TRUE,
    timeout: Timeout = None,
    output: RunPrinted = RunOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Run the same spec again.

    Creates a new run with the same spec and series, and follows it to its end, as `run` does. The new run does not
    inherit the old run's status, cancellation or suspension, nor the marks of tools such as Helm and Argo CD. Refuses
    a run whose spec the operator found invalid.
    """
    limit = seconds(timeout)
    from accelbench.kubectl.apply import Applied, create
    from accelbench.kubectl.clone_run import clone_run
    from accelbench.kubectl.follow_runs import follow_runs, print_created
    from accelbench.kubectl.runs import run_named

    with Cluster(namespace, context, kubeconfig).ask() as client:
        applied = [Applied(create(client, clone_run(run_named(client, old), name)), created=True)]
        waits = wait is Switch.TRUE
        print_created(applied, output, wait=waits)
        if waits:
            raise typer.Exit(follow_runs(client, applied, timeout=limit, output=output))
