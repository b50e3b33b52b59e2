"""`accelbench profiles [NAME]`: the profiles of a cluster, and which of its nodes fits which."""

from typing import Annotated

import typer

from accelbench.terminal.options import OperatorClass, Output, Printed, ProfileName


def profiles(
    name: ProfileName = None,
    context: Annotated[
        str | None, typer.Option("--context", help="A context of your kubeconfig; default: the current one.")
    ] = None,
    class_name: OperatorClass = "accelbench",
    output: Printed = Output.TABLE,
) -> None:
    """Show what a cluster offers: its profiles, the nodes that fit each, and devices that no profile selects."""
    from accelbench.terminal.profiles import print_profiles

    print_profiles(name, context, class_name, output)
