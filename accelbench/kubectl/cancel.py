"""Implement `kubectl accelbench cancel RUN...`: end runs and keep what they have measured."""

import sys
from collections.abc import Sequence

import click

from accelbench.kubectl import complete
from accelbench.kubectl.options import RUN_HELP, Cluster, cluster_options
from accelbench.local.exits import Exit
from accelbench.terminal.program import Command


@click.command(cls=Command)
@click.argument("names", metavar="RUN...", nargs=-1, required=True, help=RUN_HELP, shell_complete=complete.runs)
@cluster_options
def cancel(names: Sequence[str], cluster: Cluster) -> None:
    """Cancel runs, for good.

    Cases in flight are discarded; stored results stay.
    """
    from accelbench.cluster_api.kinds import RUN
    from accelbench.kubectl.apply import KUBECTL_KIND
    from accelbench.kubectl.gate import condition, is_finished
    from accelbench.kubectl.runs import UnknownRunError, bare_name, get_run

    has_unknown_name = False
    with cluster.connect() as client:
        for name in dict.fromkeys(map(bare_name, names)):
            try:
                run = get_run(client, name)
            except UnknownRunError as error:
                click.echo(f"error: {error.message}", err=True)
                has_unknown_name = True
                continue
            if is_finished(run):
                reason = condition(run, "Finished")["reason"]
                click.echo(
                    f"{KUBECTL_KIND}/{name} has already finished ({reason}): there is nothing to cancel", err=True
                )
                continue
            client.patch(RUN.path(client.namespace, name), {"spec": {"runPolicy": {"cancel": True}}})
            click.echo(f"{KUBECTL_KIND}/{name} cancelled")
    if has_unknown_name:
        sys.exit(Exit.USAGE)
