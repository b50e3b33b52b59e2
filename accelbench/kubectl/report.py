"""`kubectl accelbench report RUN`: a run's report, made from the results that the cluster keeps."""

from typing import Annotated

import typer

from accelbench.kubectl.options import RUN, Cluster, Context, Kubeconfig, Namespace
from accelbench.local.exits import Exit
from accelbench.terminal.options import Baseline, PrintedReport, ReportOutput


def report(
    name: Annotated[str, typer.Argument(metavar="RUN", help=RUN)],
    baseline: Baseline = None,
    output: PrintedReport = ReportOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Show the report of a run, even if the run is deleted: its results can outlive it.

    If the run ended without a result, it says why and ends with the run's exit code.
    """
    from accelbench.kubectl.gate import ending, exit_of
    from accelbench.kubectl.runs import found, run_named
    from accelbench.terminal.results import print_results, require_packages, with_baseline

    require_packages(output)
    with Cluster(namespace, context, kubeconfig).ask() as client:
        there = found(client, name)
        run = None if there.measured else run_named(client, name)
    print_results(with_baseline(there, baseline, name), output, name)
    code = None if run is None else exit_of(run)
    if run is not None and code is not None and code is not Exit.SUCCESS:
        typer.echo(f"benchmarkrun/{run['metadata']['name']}: {ending(run)}", err=True)
        raise typer.Exit(code)
