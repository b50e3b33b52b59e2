"""Implement `accelbench workloads [NAME]`: list the workloads, or print one with its parameters and variants."""

import sys
from typing import TYPE_CHECKING, Any

import click

from accelbench.local.exits import Exit
from accelbench.terminal.options import Output, output_option
from accelbench.terminal.program import Command

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from pydantic import BaseModel
    from rich.console import RenderableType
    from rich.table import Table

    from accelbench.workload import Workload

GAP_CHARACTERS = 2
"""Number of blanks between two columns of a table."""
MINIMUM_SUMMARY_WIDTH = 20
"""Minimum width of the column of summaries, in characters."""
BOUND_TEXTS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
"""How to write the bounds of a JSON schema, by keyword."""


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
    from accelbench.local.scripts import ScriptDoesNotReturnError
    from accelbench.terminal.console import console

    document: dict[str, Any] | list[dict[str, Any]]
    tables: RenderableType
    out = console(listing=name is None)
    if name is None:
        workloads_or_errors = {known_name: _load_or_explain(known_name) for known_name in catalogue.names()}
        document = [_describe_or_explain(known_name, workload) for known_name, workload in workloads_or_errors.items()]
        tables = _list_table(workloads_or_errors, out.width)
    else:
        try:
            with _using_script(name):
                workload = _find(name)
                document, tables = describe(workload), _workload_tables(workload)
        except (catalogue.UnknownWorkloadError, ScriptDoesNotReturnError) as error:
            raise click.BadParameter(str(error), param_hint="NAME") from error
    if output is Output.JSON:
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        sys.exit(Exit.SUCCESS)
    out.print(tables)


def _load_or_explain(name: str) -> "Workload | str":
    """Return the workload of that name; if its package cannot be loaded, return the text of the error."""
    from accelbench import catalogue

    try:
        return catalogue.find(name)
    except catalogue.UnknownWorkloadError as error:
        return str(error)


def _describe_or_explain(name: str, workload_or_error: "Workload | str") -> dict[str, Any]:
    """Return the JSON document of a workload, with the error instead of a description if it cannot be loaded."""
    if isinstance(workload_or_error, str):
        return {"name": name, "broken": workload_or_error}
    return describe(workload_or_error)


def _using_script(name: str) -> "AbstractContextManager[None]":
    """Return a context in which the script `name` is a workload of this process; for other names, it does nothing."""
    from contextlib import nullcontext
    from pathlib import Path

    from accelbench.api.case import SCRIPT_SUFFIX
    from accelbench.local import scripts

    return scripts.use(Path(name).absolute()) if name.endswith(SCRIPT_SUFFIX) else nullcontext()


def _find(name: str) -> "Workload":
    """Return the workload of that name; if it is the name of a script's file, the workload in the script."""
    from pathlib import Path

    from accelbench import catalogue
    from accelbench.api.case import SCRIPT_SUFFIX, workload_name_from_file

    if name.endswith(SCRIPT_SUFFIX):
        name = workload_name_from_file(Path(name).name)
    return catalogue.find(name)


def describe(workload: "Workload") -> dict[str, Any]:
    """Return the description of a workload, its parameters and its variants, as a JSON document."""
    from accelbench import frameworks
    from accelbench.catalogue import options_model

    return {
        "name": workload.name,
        "summary": _summary(workload),
        "unit": workload.measure(workload.Parameters()).unit,
        "observes": _observations(workload),
        "parameters": _properties(workload.Parameters),
        "variants": {
            name: {
                "summary": variant.summary or frameworks.find(variant.framework).modes[variant.mode].summary,
                "options": _properties(options_model(variant)),
            }
            for name, variant in workload.variants().items()
        },
    }


def _observations(workload: "Workload") -> dict[str, str]:
    """Return the meaning of each value that the workload observes, by name; empty if the workload is timed."""
    from accelbench.catalogue.observations import STANDARD

    if workload.measure(workload.Parameters()).protocol != "observe":
        return {}
    return {**STANDARD, **workload.observes}


def _properties(model: "type[BaseModel]") -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each field of the model, by the field's name."""
    properties: dict[str, dict[str, Any]] = model.model_json_schema().get("properties", {})
    for schema in properties.values():
        schema.pop("title", None)  # it only repeats the name
    return properties


def _summary(workload: "Workload") -> str:
    """Return the first line of the workload's docstring."""
    return (type(workload).__doc__ or "").strip().split("\n")[0]


def _list_table(workloads_or_errors: "Mapping[str, Workload | str]", width: int) -> "RenderableType":
    """Return a table of all workloads, no wider than `width` unless that is too narrow for its columns.

    The row of a workload that could not be loaded shows the error.
    """
    from rich.text import Text

    table = _empty_table("workload", "what it computes", "variants")
    longest_variant_name = 0
    for name, workload_or_error in workloads_or_errors.items():
        if isinstance(workload_or_error, str):
            table.add_row(name, Text(f"broken: {workload_or_error}"), "")
            continue
        variant_names = list(workload_or_error.variants())
        longest_variant_name = max([longest_variant_name, *map(len, variant_names)])
        table.add_row(name, _summary(workload_or_error), ", ".join(variant_names))
    # Names must not wrap, because people copy them. A comma follows the name of a variant.
    name_width = max(map(len, workloads_or_errors))
    variant_width = longest_variant_name + 1 if longest_variant_name else 0
    name_column, summary_column, variant_column = table.columns
    name_column.width, variant_column.min_width = name_width, variant_width
    available_width = width - name_width - variant_width - 2 * GAP_CHARACTERS
    summary_column.max_width = max(MINIMUM_SUMMARY_WIDTH, available_width)
    return table


def _workload_tables(workload: "Workload") -> "RenderableType":
    """Return the description of a workload for the terminal, with tables of its parameters and variants."""
    import inspect

    from rich.console import Group
    from rich.padding import Padding
    from rich.text import Text

    description = describe(workload)
    parameters = _empty_table("parameter", "default", "allowed", "what it is")
    for name, schema in description["parameters"].items():
        default = str(schema.get("default", ""))
        parameters.add_row(name, default, describe_allowed_values(schema), schema.get("description", ""))
    variants = _empty_table("variant", "options", "what it is")
    for name, variant in description["variants"].items():
        variants.add_row(name, ", ".join(variant["options"]), variant["summary"])
    # Each paragraph becomes one line, so that the terminal's width breaks it.
    paragraphs = (inspect.getdoc(type(workload)) or "").split("\n\n")
    blocks: list[RenderableType] = [
        Text(workload.name, style="bold"),
        Text("\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)),
        Padding(parameters, (1, 0)),
        variants,
    ]
    if description["observes"]:
        observations = _empty_table("observed", "what it is")
        for name, meaning in description["observes"].items():
            observations.add_row(name, meaning)
        blocks.append(Padding(observations, (1, 0, 0, 0)))
    return Group(*blocks)


def describe_allowed_values(schema: dict[str, Any]) -> str:
    """Describe the values that a JSON schema allows."""
    if "enum" in schema:
        return ", ".join(map(str, schema["enum"]))
    if "minimum" in schema and "maximum" in schema:
        return f"{schema['minimum']} to {schema['maximum']}"
    bounds = [f"{text} {schema[keyword]}" for keyword, text in BOUND_TEXTS.items() if keyword in schema]
    return ", ".join(bounds) or str(schema.get("type", ""))


def _empty_table(*columns: str) -> "Table":
    """Return a table with these columns and no rows."""
    from rich.table import Table

    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, GAP_CHARACTERS, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table
