"""Implement `kubectl accelbench cancel RUN...`: end runs and keep what they have measured."""

from typing import Annotated

import typer

from accelbench.kubectl.options import RUN, Cluster, Context, Kubeconfig, Namespace
from accelbench.local.exits import Exit


def cancel(
    names: Annotated[list[str], typer.Argument(metavar="RUN...", help=RUN)],
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Cancel runs, for good.

    Cases in flight are discarded; stored results stay.
    """
    from accelbench.cluster_api.kinds import RUN
    from accelbench.kubectl.apply import KUBECTL_KIND
    from accelbench.kubectl.gate import condition, is_finished
    from accelbench.kubectl.runs import UnknownRunError, bare, run_named

    unknown = False
    with Cluster(namespace, context, kubeconfig).ask() as client:
        for name in dict.fromkeys(map(bare, names)):
            try:
                run = run_named(client, name)
            except UnknownRunError as error:
                typer.echo(f"error: {error.message}", err=True)
                unknown = True
                continue
            if is_finished(run):
                reason = condition(run, "Finished")["reason"]
                typer.echo(
                    f"{KUBECTL_KIND}/{name} has already finished ({reason}): there is nothing to cancel", err=True
                )
                continue
            client.patch(RUN.path(client.namespace, name), {"spec": {"runPolicy": {"cancel": True}}})
            typer.echo(f"{KUBECTL_KIND}/{name} cancelled")
    if unknown:
        raise typer.Exit(Exit.USAGE)
