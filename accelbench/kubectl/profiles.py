"""`kubectl accelbench profiles [NAME]`: as `accelbench profiles`, with kubectl's options."""

from typing import Annotated

import typer

from accelbench.cli.options import Output
from accelbench.cli.profiles import CLASS, NAME, show
from accelbench.kubectl.options import Context, Kubeconfig


def profiles(
    name: Annotated[str | None, NAME] = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
    class_name: Annotated[str, CLASS] = "accelbench",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
) -> None:
    """Show the profiles of a cluster, and what fits them.

    Shows the nodes that fit each profile, and devices that no profile selects.
    """
    show(name, context, class_name, output, kubeconfig)
