"""Implement `kubectl accelbench profiles [NAME]`: `accelbench profiles` with kubectl's options."""

from pathlib import Path

import click

from accelbench.kubectl.options import context_option, kubeconfig_option
from accelbench.terminal.options import Output, class_option, operator_namespace_option, output_option, profile_argument
from accelbench.terminal.program import Command


@click.command(cls=Command)
@profile_argument
@context_option
@kubeconfig_option
@class_option
@operator_namespace_option
@output_option(Output)
def profiles(
    name: str | None,
    context: str | None,
    kubeconfig: Path | None,
    class_name: str,
    operator_namespace: str | None,
    output: Output,
) -> None:
    """Show the profiles of a cluster, and what fits them.

    Shows the nodes that fit each profile, and devices that no profile selects.
    """
    from accelbench.terminal.profiles import print_profiles

    print_profiles(name, context, class_name, operator_namespace, output, kubeconfig)
