"""`accelbench profiles [NAME]`: the profiles of a cluster, and which of its nodes fits which."""

from pathlib import Path
from typing import Annotated

import typer

from accelbench.cli.exits import Exit
from accelbench.cli.options import Output

NAME = typer.Argument(metavar="[NAME]", help="Show one profile, with every node and why it does not fit.")
CLASS = typer.Option("--class", help="The className of the operator whose profiles to show.")


def profiles(
    name: Annotated[str | None, NAME] = None,
    context: Annotated[
        str | None, typer.Option("--context", help="A context of your kubeconfig; default: the current one.")
    ] = None,
    class_name: Annotated[str, CLASS] = "accelbench",
    output: Annotated[Output, typer.Option("--output", "-o", help="How to print it.")] = Output.TABLE,
) -> None:
    """Show what a cluster offers: its profiles, the nodes that fit each, and devices that no profile selects."""
    show(name, context, class_name, output)


def show(
    name: str | None, context: str | None, class_name: str, output: Output, kubeconfig: Path | None = None
) -> None:
    """Print the profiles of the operator of that class, or the one of that name."""
    import json

    from accelbench.api.profiles import InvalidProfilesError, UnknownProfileError
    from accelbench.cli.console import console
    from accelbench.cli.in_cluster import ClusterError, read_cluster
    from accelbench.cli.offered import as_json, offered, tables

    try:
        found = offered(read_cluster(context, class_name, kubeconfig))
        shown = found.one(name) if name else found
    except (ClusterError, InvalidProfilesError) as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(Exit.USAGE) from error
    except UnknownProfileError as error:
        raise typer.BadParameter(str(error), param_hint="NAME") from error
    if output is Output.JSON:
        typer.echo(json.dumps(as_json(shown), indent=2, ensure_ascii=False))
        return
    for table in tables(shown, each_node=name is not None):
        console(listing=True).print(table)
    for note in shown.notes:
        typer.echo(f"note: {note}", err=True)
