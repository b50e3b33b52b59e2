"""Implement `kubectl accelbench compare A B`: compare runs or series of the cluster."""

import sys
from collections.abc import Sequence

import click

from accelbench.kubectl import complete
from accelbench.kubectl.options import Cluster, cluster_options
from accelbench.local.exits import help_text
from accelbench.terminal.options import Output, allow_different_option, output_option
from accelbench.terminal.program import Command


@click.command(cls=Command, epilog=help_text())
@click.argument(
    "before",
    metavar="A",
    help="Before: a run's name, or series/NAME for all results of a series.",
    shell_complete=complete.runs,
)
@click.argument("after", metavar="B", help="After: the same.", shell_complete=complete.runs)
@allow_different_option
@output_option(Output)
@cluster_options
def compare(before: str, after: str, allow_different: Sequence[str], output: Output, cluster: Cluster) -> None:
    """Compare two runs or series, variant by variant.

    Refuses if the two differ in a condition that affects times, such as the hardware or a version. If a side has ten or
    more results of a case, it also reports lasting changes within that series.
    """
    from accelbench.history.sample import Side
    from accelbench.kubectl.runs import read_run_or_series
    from accelbench.terminal.comparison import print_comparison, require_scipy

    require_scipy()
    with cluster.connect() as client:
        sides = [
            Side("A", read_run_or_series(client, before), before),
            Side("B", read_run_or_series(client, after), after),
        ]
    sys.exit(print_comparison(sides, allow_different, output))
