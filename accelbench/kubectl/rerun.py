"""Implement `kubectl accelbench rerun RUN`: create a new run with the spec of an existing one."""

import sys

import click

from accelbench.kubectl.options import Cluster, RunOutput, cluster_options, follow_options, run_argument
from accelbench.local.exits import help_text
from accelbench.terminal.program import Command


@click.command(cls=Command, epilog=help_text())
@run_argument("old")
@click.option("--name", metavar="NAME", help="The new run's name. Default: the cluster chooses one.")
@follow_options
@cluster_options
def rerun(old: str, name: str | None, wait: bool, timeout: float | None, output: RunOutput, cluster: Cluster) -> None:
    """Run the same spec again.

    Creates a new run with the same spec and series, and follows it to its end, as `run` does. The new run does not
    inherit the old run's status, cancellation or suspension, nor the marks of tools such as Helm and Argo CD. Refuses
    a run whose spec the operator found invalid.
    """
    from accelbench.kubectl.apply import AppliedRun, create
    from accelbench.kubectl.clone_run import clone_run
    from accelbench.kubectl.follow_runs import follow_runs, print_applied_runs
    from accelbench.kubectl.runs import get_run

    with cluster.connect() as client:
        manifest = clone_run(get_run(client, old), name)
        applied_runs = [AppliedRun(create(client, manifest), was_created=True)]
        print_applied_runs(applied_runs, output, wait=wait)
        if wait:
            sys.exit(follow_runs(client, applied_runs, timeout_seconds=timeout, output=output))
