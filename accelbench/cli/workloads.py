"""Implement `accelbench workloads [NAME]`: list the workloads, or print one with its parameters and variants."""

import sys
from typing import TYPE_CHECKING, Any

import click

from accelbench.local.exits import Exit
from accelbench.terminal.options import Output, output_option
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic import BaseModel
    from rich.console import RenderableType
    from rich.table import Table

    from accelbench.workload import Workload

GAP = 2
"""Blank columns between columns."""
NARROWEST_SUMMARY = 20


@click.command(cls=Command)
@click.argument(
    "name",
    metavar="[NAME]",
    required=False,
    help="Show one workload, with its parameters; or a script of yours.",
)
@output_option(Output)
def workloads(name: str | None, output: Output) -> None:
    """List the workloads, or show one in full."""
    import json

    from accelbench import catalogue
    from accelbench.terminal.console import console

    described: dict[str, Any] | list[dict[str, Any]]
    shown: RenderableType
    out = console(listing=name is None)
    if name is None:
        workloads = {name: _load_or_explain(name) for name in catalogue.names()}
        described = [_described(name, workload) for name, workload in workloads.items()]
        shown = _all(workloads, out.width)
    else:
        try:
            workload = _find(name)
        except catalogue.UnknownWorkloadError as error:
            raise click.BadParameter(str(error), param_hint="NAME") from error
        described, shown = describe(workload), _one(workload)
    if output is Output.JSON:
        click.echo(json.dumps(described, indent=2, ensure_ascii=False))
        sys.exit(Exit.SUCCESS)
    out.print(shown)


def _load_or_explain(name: str) -> "Workload | str":
    """Return the workload, or the fault of its package, so that a broken package does not hide the others."""
    from accelbench import catalogue

    try:
        return catalogue.find(name)
    except catalogue.UnknownWorkloadError as error:
        return str(error)


def _described(name: str, workload: "Workload | str") -> dict[str, Any]:
    return {"name": name, "broken": workload} if isinstance(workload, str) else describe(workload)


def _find(name: str) -> "Workload":
    from pathlib import Path

    from accelbench import catalogue
    from accelbench.api.case import SCRIPT_SUFFIX, name_of_file
    from accelbench.catalogue import script

    if not name.endswith(SCRIPT_SUFFIX):
        return catalogue.find(name)
    file = Path(name).absolute()
    with script.use(file):
        return catalogue.find(name_of_file(file.name))


def describe(workload: "Workload") -> dict[str, Any]:
    """Return name, summary, parameters and variants for JSON."""
    from accelbench import frameworks
    from accelbench.catalogue import options_model

    return {
        "name": workload.name,
        "summary": _summary(workload),
        "unit": workload.measure(workload.Parameters()).unit,
        "observes": _observed(workload),
        "parameters": _properties(workload.Parameters),
        "variants": {
            use: {
                "summary": kind.summary or frameworks.find(kind.framework).modes[kind.mode].summary,
                "options": _properties(options_model(kind)),
            }
            for use, kind in workload.variants().items()
        },
    }


def _observed(workload: "Workload") -> dict[str, str]:
    """Return what is observed instead of a time, with its meaning; empty for a timed workload."""
    from accelbench.catalogue.observations import STANDARD

    timed = workload.measure(workload.Parameters()).protocol != "observe"
    return {} if timed else {**STANDARD, **workload.observes}


def _properties(model: "type[BaseModel]") -> dict[str, dict[str, Any]]:
    properties = model.model_json_schema().get("properties", {})
    return {
        name: {key: value for key, value in schema.items() if key != "title"} for name, schema in properties.items()
    }


def _summary(workload: "Workload") -> str:
    return (type(workload).__doc__ or "").strip().split("\n")[0]


def _all(workloads: "Mapping[str, Workload | str]", width: int) -> "RenderableType":
    from rich.text import Text

    table = _table("workload", "what it computes", "variants")
    # Names must not wrap, because people copy them.
    name_column, summary_column, use_column = table.columns
    uses = (use for workload in workloads.values() if not isinstance(workload, str) for use in workload.variants())
    name_column.width, use_column.min_width = max(map(len, workloads)), max((len(f"{use},") for use in uses), default=0)
    summary_column.max_width = max(NARROWEST_SUMMARY, width - name_column.width - use_column.min_width - 2 * GAP)
    for name, workload in workloads.items():
        if isinstance(workload, str):
            table.add_row(name, Text(f"broken: {workload}"), "")
        else:
            table.add_row(name, _summary(workload), ", ".join(workload.variants()))
    return table


def _one(workload: "Workload") -> "RenderableType":
    import inspect

    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    described = describe(workload)
    parameters = _table("parameter", "default", "allowed", "what it is")
    for key, schema in described["parameters"].items():
        parameters.add_row(key, str(schema.get("default", "")), allowed(schema), schema.get("description", ""))
    variants = _table("variant", "options", "what it is")
    for use, variant in described["variants"].items():
        variants.add_row(use, ", ".join(variant["options"]), variant["summary"])
    observed = _table("observed", "what it is")
    for key, meaning in described["observes"].items():
        observed.add_row(key, meaning)
    return Group(
        Text(workload.name, style="bold"),
        Text("\n\n".join(" ".join(part.split()) for part in (inspect.getdoc(type(workload)) or "").split("\n\n"))),
        Padding(parameters, (1, 0)),
        variants,
        *([Padding(observed, (1, 0, 0, 0))] if described["observes"] else []),
    )


def allowed(schema: dict[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    bounds = [
        f"{words} {schema[keyword]}"
        for keyword, words in (
            ("minimum", "at least"),
            ("exclusiveMinimum", "above"),
            ("maximum", "at most"),
            ("exclusiveMaximum", "below"),
        )
        if keyword in schema
    ]
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    return ", ".join(bounds) or str(schema.get("type", ""))


def _table(*columns: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
