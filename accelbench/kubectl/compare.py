"""Implement `kubectl accelbench compare A B`: compare runs or series of the cluster."""

from typing import Annotated

import typer

from accelbench.kubectl.options import Cluster, Context, Kubeconfig, Namespace
from accelbench.terminal.options import AllowDifferent, Output, Printed

SIDE = "a run's name, or series/NAME for all results of a series"


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=f"Before: {SIDE}.")],
    after: Annotated[str, typer.Argument(metavar="B", help="After: the same.")],
    allow_different: AllowDifferent = None,
    output: Printed = Output.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Compare two runs or series, variant by variant.

    Refuses if something that matters differs. For a series of ten or more results, it also says where it has a step.
    """
    from accelbench.history.sample import Side
    from accelbench.kubectl.runs import side_results
    from accelbench.terminal.comparison import print_comparison, require_scipy

    require_scipy()
    with Cluster(namespace, context, kubeconfig).ask() as client:
        sides = [Side(name, side_results(client, text), text) for name, text in (("A", before), ("B", after))]
    raise typer.Exit(print_comparison(sides, allow_different or [], output))
