"""Implement `kubectl accelbench compare A B`: compare runs or series of the cluster."""

from typing import Annotated

import typer

from accelbench.cli.compare import ALLOW_DIFFERENT, print_comparison, refuse_without_scipy
from accelbench.cli.options import Output
from accelbench.kubectl.options import Cluster, Context, Kubeconfig, Namespace

SIDE = "a run's name, or series/NAME for all results of a series"


def compare(
    before: Annotated[str, typer.Argument(metavar="A", help=f"Before: {SIDE}.")],
    after: Annotated[str, typer.Argument(metavar="B", help="After: the same.")],
    allow_different: Annotated[list[str] | None, ALLOW_DIFFERENT] = None,
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Compare two runs or series, variant by variant.

    Refuses if something that matters differs. For a series of ten or more results, it also says where it has a step.
    """
    refuse_without_scipy()
    from accelbench.history.sample import Side
    from accelbench.kubectl.runs import side_results

    with Cluster(namespace, context, kubeconfig).ask() as client:
        sides = [Side(name, side_results(client, text), text) for name, text in (("A", before), ("B", after))]
    raise typer.Exit(print_comparison(sides, allow_different or [], output))
