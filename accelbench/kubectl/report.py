"""Implement `kubectl accelbench report RUN`: print the report of a run from the results that the cluster stores."""

import sys

import click

from accelbench.kubectl.options import Cluster, cluster_options, run_argument
from accelbench.local.exits import Exit, help_text
from accelbench.terminal.options import ReportOutput, baseline_option, output_option
from accelbench.terminal.program import Command


@click.command(cls=Command, epilog=help_text())
@run_argument("name")
@baseline_option
@output_option(ReportOutput)
@cluster_options
def report(name: str, baseline: str | None, output: ReportOutput, cluster: Cluster) -> None:
    """Show the report of a run, even if the run is deleted: its results can outlive it.

    If the run ended without a result, it says why and ends with the run's exit code.
    """
    from accelbench.kubectl.gate import exit_of, outcome_text
    from accelbench.kubectl.runs import read_results, run_named
    from accelbench.terminal.results import print_results, require_packages, with_baseline

    require_packages(output)
    with cluster.connect() as client:
        results = read_results(client, name)
        run = None if results.measured else run_named(client, name)
    print_results(with_baseline(results, baseline, name), output, name)
    code = None if run is None else exit_of(run)
    if run is not None and code is not None and code is not Exit.SUCCESS:
        click.echo(f"benchmarkrun/{run['metadata']['name']}: {outcome_text(run)}", err=True)
        sys.exit(code)
