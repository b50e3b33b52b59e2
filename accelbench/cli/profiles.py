"""Implement `accelbench profiles [NAME]`: print the profiles of a cluster and the nodes that fit them."""

import click

from accelbench.terminal.options import Output, class_option, operator_namespace_option, output_option, profile_argument
from accelbench.terminal.program import Command


@click.command(cls=Command)
@profile_argument
@click.option("--context", metavar="NAME", help="A context of your kubeconfig; default: the current one.")
@class_option
@operator_namespace_option
@output_option(Output)
def profiles(
    name: str | None, context: str | None, class_name: str, operator_namespace: str | None, output: Output
) -> None:
    """Show what a cluster offers: its profiles, the nodes that fit each, and devices that no profile selects."""
    from accelbench.terminal.profiles import print_profiles

    print_profiles(name, context, class_name, operator_namespace, output)
