"""`kubectl accelbench report RUN`: a run's report, made from the results that the cluster keeps."""

from typing import Annotated

import typer

from accelbench.cli.report import BASELINE, OUTPUT, ReportOutput, refuse_without_what_it_needs, show, with_baseline
from accelbench.kubectl.options import RUN, Cluster, Context, Kubeconfig, Namespace


def report(
    name: Annotated[str, typer.Argument(metavar="RUN", help=RUN)],
    baseline: Annotated[str | None, BASELINE] = None,
    output: Annotated[ReportOutput, OUTPUT] = ReportOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show the report of a run, even if the run is deleted: its results can outlive it."""
    refuse_without_what_it_needs(output)
    from accelbench.kubectl.runs import found

    with Cluster(namespace, context, kubeconfig).ask() as server:
        there = found(server, name)
    show(with_baseline(there, baseline, name), output, name)
