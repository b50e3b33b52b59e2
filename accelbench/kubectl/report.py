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
    from accelbench.kubectl.runs import get_run, read_results
    from accelbench.terminal.results import print_results, require_packages, with_baseline

    require_packages(output)
    with cluster.connect() as client:
        results = read_results(client, name)
        run_without_result = None if results.measured else get_run(client, name)
    print_results(with_baseline(results, baseline, name), output, name)
    if run_without_result is None:
        return
    code = exit_of(run_without_result)
    if code is not None and code is not Exit.SUCCESS:
        message = outcome_text(run_without_result)
        click.echo(f"benchmarkrun/{run_without_result['metadata']['name']}: {message}", err=True)
        sys.exit(code)
