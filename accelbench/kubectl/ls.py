"""`kubectl accelbench ls`: the runs of a namespace, in the columns that `kubectl get bmr` has."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from accelbench.kubectl.options import Cluster, Context, Kubeconfig, Namespace

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

GAP = "   "


class ListOutput(StrEnum):
    """A table, all its columns, the objects, or their names."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


def ls(
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="List the runs of every namespace.")
    ] = False,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Keep watching, and print what changes.")] = False,
    output: Annotated[ListOutput, typer.Option("--output", "-o", help="How to print them.")] = ListOutput.TABLE,
    namespace: Namespace = None,
    context: Context = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """List runs: where each stands, and what it found."""
    from accelbench.cluster_api.kinds import RUN

    if all_namespaces and namespace:
        raise typer.BadParameter("--namespace names one, --all-namespaces all", param_hint="--all-namespaces")
    with Cluster(namespace, context, kubeconfig).ask() as client:
        at = RUN.path(None if all_namespaces else client.namespace)
        try:
            if output in {ListOutput.TABLE, ListOutput.WIDE}:
                _print_table(client, at, wide=output is ListOutput.WIDE, everywhere=all_namespaces, watch=watch)
            else:
                _print_objects(client, at, output, watch=watch)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def _print_objects(client: "Client", at: str, output: ListOutput, *, watch: bool) -> None:
    items, version = client.items_and_version(at)
    if output is ListOutput.NAME or watch:
        for each in items:
            _print_object(each, output)
    else:
        _print_object({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, output)
    for changed in _changes(client, at, version, table=False) if watch else ():
        _print_object(changed, output)


def _changes(client: "Client", at: str, version: str, *, table: bool) -> Iterator[dict[str, Any]]:
    """What changes after that version, for as long as somebody looks; all there is, where it is too old."""
    from accelbench.cluster_api.errors import ExpiredError

    while True:
        try:
            for event in client.watch(at, version, table=table):
                version = event["object"]["metadata"].get("resourceVersion") or version
                yield event["object"]
        except ExpiredError:
            if table:
                anew = client.table(at)
                version = anew["metadata"]["resourceVersion"]
                yield anew
            else:
                items, version = client.items_and_version(at)
                yield from items


def _print_object(manifest: dict[str, Any], output: ListOutput) -> None:
    import json

    import yaml

    if output is ListOutput.NAME:
        typer.echo(f"benchmarkrun.accelbench.dev/{manifest['metadata']['name']}")
    elif output is ListOutput.JSON:
        typer.echo(json.dumps(manifest, indent=4, ensure_ascii=False))
    else:
        typer.echo(f"---\n{yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)}", nl=False)


def _print_table(client: "Client", at: str, *, wide: bool, everywhere: bool, watch: bool) -> None:
    table = client.table(at)
    columns = table["columnDefinitions"]
    shown = [place for place, column in enumerate(columns) if wide or not column.get("priority")]
    heads = [*(["NAMESPACE"] if everywhere else []), *(columns[place]["name"].upper() for place in shown)]
    rows = list(_rows(table, shown, everywhere=everywhere))
    if not rows and not watch:
        where = "any namespace" if everywhere else f"namespace {client.namespace}"
        typer.echo(f"no BenchmarkRuns in {where}", err=True)
        return
    widths = _print_rows([heads, *rows])
    for changed in _changes(client, at, table["metadata"]["resourceVersion"], table=True) if watch else ():
        widths = _print_rows(list(_rows(changed, shown, everywhere=everywhere)), widths)


def _rows(table: dict[str, Any], shown: Sequence[int], *, everywhere: bool) -> Iterator[list[str]]:
    from accelbench.document import on_one_line

    for row in table["rows"] or ():
        place = [row["object"]["metadata"]["namespace"]] if everywhere else []
        yield [on_one_line("" if each is None else str(each)) for each in (*place, *(row["cells"][at] for at in shown))]


def _print_rows(rows: Sequence[Sequence[str]], widths: Sequence[int] = ()) -> Sequence[int]:
    """In columns as wide as `widths` at least; on a terminal that is too narrow, the widest column is folded."""
    from rich.table import Table
    from rich.text import Text

    from accelbench.terminal.console import console

    screen = console()
    widths = [
        max(map(len, column))
        for column in zip(*rows, *([["x" * width for width in widths]] if widths else []), strict=True)
    ]
    if not screen.is_terminal or sum(widths) + len(GAP) * (len(widths) - 1) <= screen.width:
        for row in rows:
            typer.echo(GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return widths
    table = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, len(GAP), 0, 0))
    widest = widths.index(max(widths))
    for place, width in enumerate(widths):
        table.add_column(overflow="fold", no_wrap=place != widest, min_width=None if place == widest else width)
    for row in rows:
        table.add_row(*map(Text, row))
    screen.print(table)
    return widths
