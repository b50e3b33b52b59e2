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

COLUMN_GAP = "   "


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
        raise click.BadParameter("give either --namespace or --all-namespaces", param_hint="--all-namespaces")
    with cluster.connect() as client:
        path = RUN.path(None if all_namespaces else client.namespace)
        if output in {ListOutput.TABLE, ListOutput.WIDE}:
            _print_table(client, path, wide=output is ListOutput.WIDE, all_namespaces=all_namespaces, watch=watch)
        else:
            _print_objects(client, path, output, watch=watch)


def _print_objects(client: "Client", path: str, output: ListOutput, *, watch: bool) -> None:
    """Print all runs as JSON, YAML or names; with `watch`, also every later change."""
    runs, version = client.items_and_version(path)
    if output is ListOutput.NAME or watch:  # with `watch`, changed runs follow, so the runs cannot be one list
        for run in runs:
            _print_object(run, output)
    else:
        _print_object({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": runs}, output)
    if watch:
        for run in _watch_changes(client, path, version, as_table=False):
            _print_object(run, output)


def _watch_changes(client: "Client", path: str, version: str, *, as_table: bool) -> Iterator[dict[str, Any]]:
    """Yield each run that changes after the resource version `version`, without end.

    With `as_table`, yield a table with one row for each change. If the server no longer knows the changes since the
    version, all runs are yielded again.
    """
    from accelbench.cluster_api.errors import ExpiredError

    while True:
        try:
            for event in client.watch(path, version, table=as_table):
                version = event["object"]["metadata"].get("resourceVersion") or version
                yield event["object"]
        except ExpiredError:  # the server no longer knows the changes since that version
            if as_table:
                table_of_all_runs = client.table(path)
                version = table_of_all_runs["metadata"]["resourceVersion"]
                yield table_of_all_runs
            else:
                runs, version = client.items_and_version(path)
                yield from runs


def _print_object(manifest: dict[str, Any], output: ListOutput) -> None:
    """Print a run, or a list of runs, in this format."""
    import json

    import yaml

    if output is ListOutput.NAME:
        click.echo(f"benchmarkrun.accelbench.dev/{manifest['metadata']['name']}")
    elif output is ListOutput.JSON:
        click.echo(json.dumps(manifest, indent=4, ensure_ascii=False))
    else:
        click.echo(f"---\n{yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True)}", nl=False)


def _print_table(client: "Client", path: str, *, wide: bool, all_namespaces: bool, watch: bool) -> None:
    """Print the server's table of runs; with `watch`, also every later change."""
    table = client.table(path)
    all_columns = table["columnDefinitions"]
    # As in kubectl, a column whose priority is not 0 is only in the wide table.
    columns = [index for index, column in enumerate(all_columns) if wide or not column.get("priority")]
    heads = [all_columns[index]["name"].upper() for index in columns]
    if all_namespaces:
        heads.insert(0, "NAMESPACE")
    rows = list(_rows(table, columns, with_namespace=all_namespaces))
    if not rows and not watch:
        namespaces = "any namespace" if all_namespaces else f"namespace {client.namespace}"
        click.echo(f"no BenchmarkRuns in {namespaces}", err=True)
        return
    widths = _print_rows([heads, *rows])
    if watch:
        for changed_table in _watch_changes(client, path, table["metadata"]["resourceVersion"], as_table=True):
            widths = _print_rows(list(_rows(changed_table, columns, with_namespace=all_namespaces)), widths)


def _rows(table: dict[str, Any], columns: Sequence[int], *, with_namespace: bool) -> Iterator[list[str]]:
    """Yield the cells of each row of the server's table as texts; `columns` are the indices of the columns to take."""
    from accelbench.document import on_one_line

    for row in table["rows"] or ():
        cells = [row["cells"][index] for index in columns]
        if with_namespace:
            cells.insert(0, row["object"]["metadata"]["namespace"])
        yield [on_one_line("" if cell is None else str(cell)) for cell in cells]


def _print_rows(rows: Sequence[Sequence[str]], minimum_widths: Sequence[int] = ()) -> Sequence[int]:
    """Print rows in aligned columns, and return the widths of the columns, for the rows that follow later.

    On a narrow terminal, the widest column wraps.
    """
    from rich.table import Table
    from rich.text import Text

    from accelbench.terminal.console import console

    screen = console()
    widths = list(minimum_widths) or [0] * len(rows[0])
    for row in rows:
        widths = [max(width, len(cell)) for width, cell in zip(widths, row, strict=True)]
    row_width = sum(widths) + len(COLUMN_GAP) * (len(widths) - 1)
    if not screen.is_terminal or row_width <= screen.width:
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            click.echo(COLUMN_GAP.join(cells).rstrip())
        return widths
    table = Table(box=None, show_header=False, show_edge=False, pad_edge=False, padding=(0, len(COLUMN_GAP), 0, 0))
    widest_column = widths.index(max(widths))
    for index, width in enumerate(widths):
        if index == widest_column:
            table.add_column(overflow="fold")
        else:
            table.add_column(overflow="fold", no_wrap=True, min_width=width)
    for row in rows:
        table.add_row(*map(Text, row))
    screen.print(table)
    return widths
