"""Implement `kubectl accelbench ls`: list the runs of a namespace in the columns of `kubectl get bmr`."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import click

from accelbench.kubectl.options import Cluster, cluster_options
from accelbench.terminal.options import output_option
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from accelbench.cluster_api.client import Client

GAP = "   "


class ListOutput(StrEnum):
    """Name the formats: a table, all columns of it, the objects, or their names."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    NAME = "name"


@click.command(cls=Command)
@click.option("--all-namespaces", "-A", is_flag=True, help="List the runs of every namespace.")
@click.option("--watch", "-w", is_flag=True, help="Keep watching, and print what changes.")
@output_option(ListOutput, "How to print them.")
@cluster_options
def ls(all_namespaces: bool, watch: bool, output: ListOutput, cluster: Cluster) -> None:
    """List runs: where each stands, and what it found."""
    from accelbench.cluster_api.kinds import RUN

    if all_namespaces and cluster.namespace:
        raise click.BadParameter("--namespace names one, --all-namespaces all", param_hint="--all-namespaces")
    with cluster.connect() as client:
        path = RUN.path(None if all_namespaces else client.namespace)
        if output in {ListOutput.TABLE, ListOutput.WIDE}:
            _print_table(client, path, wide=output is ListOutput.WIDE, everywhere=all_namespaces, watch=watch)
        else:
            _print_objects(client, path, output, watch=watch)


def _print_objects(client: "Client", path: str, output: ListOutput, *, watch: bool) -> None:
    """Print all runs as JSON, YAML or names; with `watch`, then each change."""
    items, version = client.items_and_version(path)
    if output is ListOutput.NAME or watch:
        for item in items:
            _print_object(item, output)
    else:
        _print_object({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}, output)
    for changed in _changes(client, path, version, table=False) if watch else ():
        _print_object(changed, output)


def _changes(client: "Client", path: str, version: str, *, table: bool) -> Iterator[dict[str, Any]]:
    """Yield what changes after a resource version, without end; if the version has expired, all objects again."""
    from accelbench.cluster_api.errors import ExpiredError

    while True:
        try:
            for event in client.watch(path, version, table=table):
                version = event["object"]["metadata"].get("resourceVersion") or version
                yield event["object"]
        except ExpiredError:
            if table:
                whole_table = client.table(path)
                version = whole_table["metadata"]["resourceVersion"]
                yield whole_table
            else:
                items, version = client.items_and_version(path)
                yield from items


def _print_object(manifest: dict[str, Any], output: ListOutput) -> None:
    """Print one object in the chosen format."""
    import json

    import yaml

    if output is ListOutput.NAME:
        click.echo(f"benchmarkrun.accelbench.dev/{manifest['metadata']['name']}")
    elif output is ListOutput.JSON:
        click.echo(json.dumps(manifest, indent=4, ensure_ascii=False))
    else:
        click.echo(f"---\n{yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)}", nl=False)


def _print_table(client: "Client", path: str, *, wide: bool, everywhere: bool, watch: bool) -> None:
    """Print the server's table; with `watch`, then the rows that change."""
    table = client.table(path)
    columns = table["columnDefinitions"]
    columns_shown = [index for index, column in enumerate(columns) if wide or not column.get("priority")]
    heads = [*(["NAMESPACE"] if everywhere else []), *(columns[index]["name"].upper() for index in columns_shown)]
    rows = list(_rows(table, columns_shown, everywhere=everywhere))
    if not rows and not watch:
        where = "any namespace" if everywhere else f"namespace {client.namespace}"
        click.echo(f"no BenchmarkRuns in {where}", err=True)
        return
    widths = _print_rows([heads, *rows])
    for changed in _changes(client, path, table["metadata"]["resourceVersion"], table=True) if watch else ():
        widths = _print_rows(list(_rows(changed, columns_shown, everywhere=everywhere)), widths)


def _rows(table: dict[str, Any], columns_shown: Sequence[int], *, everywhere: bool) -> Iterator[list[str]]:
    """Yield the cells of each row on one line each, the namespace first if the table has all namespaces."""
    from accelbench.document import on_one_line

    for row in table["rows"] or ():
        namespace = [row["object"]["metadata"]["namespace"]] if everywhere else []
        cells = (*namespace, *(row["cells"][index] for index in columns_shown))
        yield [on_one_line("" if cell is None else str(cell)) for cell in cells]


def _print_rows(rows: Sequence[Sequence[str]], widths: Sequence[int] = ()) -> Sequence[int]:
    """Print rows in columns at least as wide as `widths`, and return the widths.

    On a terminal that is too narrow the widest column is folded.
    """
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
            click.echo(GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        return widths
    table = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, len(GAP), 0, 0))
    widest = widths.index(max(widths))
    for index, width in enumerate(widths):
        table.add_column(overflow="fold", no_wrap=index != widest, min_width=None if index == widest else width)
    for row in rows:
        table.add_row(*map(Text, row))
    screen.print(table)
    return widths
