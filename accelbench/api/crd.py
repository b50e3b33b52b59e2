"""Generate the CustomResourceDefinitions from the models: `python -m accelbench.api.crd [--check]`.

pydantic generates JSON schemas; a CRD needs a structural schema: without references, floats, or keywords that only JSON
schema has. It needs no nullable fields: the API server drops nulls, so null and absent are the same.
"""

import argparse
import difflib
import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel

from accelbench.api.metadata import GROUP, VERSION
from accelbench.api.result import BenchmarkResult
from accelbench.api.rules import ANY_FIELDS, EXTENSION
from accelbench.api.run import BenchmarkRun

DIRECTORY = Path("crds")
"""Relative to the root of a checkout, as the models may be those of an installed wheel."""
COMMAND = "python -m accelbench.api.crd"
Schema = dict[str, Any]
MAXIMUM_INTEGER = 2**53 - 1
"""Larger integers are not the same in every JSON reader."""
MAXIMUM_ENTRIES = 4096
"""Maximum number of entries of lists and maps that declare none."""
MAXIMUM_CHARACTERS = 32 * 1024
"""Maximum length of strings that declare none."""

COPIED = (
    "description",
    "type",
    "format",
    "enum",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "maxProperties",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    EXTENSION,
    ANY_FIELDS,
)
DROPPED = {"title", "default", "const", "propertyNames", "anyOf", "$ref", "properties", "items", "additionalProperties"}


class NotStructuralError(ValueError):
    """Report a model that a structural schema cannot express."""


@dataclass(frozen=True)
class Column:
    """Describe a column of `kubectl get`; those with `wide` need `--output=wide`."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False

    def to_crd(self) -> dict[str, Any]:
        """Return the column as an entry of `additionalPrinterColumns`."""
        entry: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return entry | ({"description": self.description} if self.description else {}) | {"priority": int(self.wide)}


@dataclass(frozen=True)
class CustomResource:
    """Describe one of the API's kinds: its model, names and columns."""

    model: type[BaseModel]
    plural: str
    short: str
    columns: tuple[Column, ...]
    status: bool = False
    """True if the status is a subresource."""

    @property
    def name(self) -> str:
        """Return the kind's name, as `BenchmarkRun`."""
        return self.model.__name__

    @property
    def file(self) -> str:
        """Return the name of the CRD's generated file."""
        return f"{self.plural}.{GROUP}.yaml"


AGE = Column("Age", ".metadata.creationTimestamp", "date")
FINISHED = '.status.conditions[?(@.type=="Finished")].message'

KINDS = (
    CustomResource(
        BenchmarkRun,
        plural="benchmarkruns",
        short="bmr",
        status=True,
        columns=(
            Column("Workload", ".spec.workload.name"),
            Column("Status", ".status.phase", description="The run's state, or why it failed."),
            Column("Done", ".status.cases.measured", "integer", "Cases that have a result."),
            Column("Cases", ".status.cases.total", "integer"),
            Column("Result", ".status.headline", description="The speedup with its interval, or what was observed."),
            Column("Failed", ".status.cases.failed", "integer", "Cases that ended without a result.", wide=True),
            Column("Profile", ".spec.accelerator.profile", description="The kind of nodes.", wide=True),
            Column("Series", ".spec.series", wide=True),
            Column("Started", ".status.startTime", "date", wide=True),
            Column("Finished", ".status.completionTime", "date", wide=True),
            Column("Message", FINISHED, description="What it waits for, or how it ended.", wide=True),
            AGE,
        ),
    ),
    CustomResource(
        BenchmarkResult,
        plural="benchmarkresults",
        short="bmres",
        columns=(
            Column("Workload", ".result.case.workload"),
            Column("Case", ".result.case.name"),
            Column("Valid", ".summary.valid", "boolean", "Complete, and no check or variant failed."),
            Column("Result", ".summary.headline", description="The speedup with its interval, or what was observed."),
            Column("Run", ".result.case.origin.run", wide=True),
            Column("Rounds", ".result.rounds", "integer", "Complete rounds.", wide=True),
            Column("Node", ".summary.node", description="The node that it was measured on.", wide=True),
            Column("Finished", ".result.finished", "date", wide=True),
            AGE,
        ),
    ),
)


@functools.cache
def schema_of(kind: CustomResource) -> Schema:
    """Return the kind's structural OpenAPI v3 schema, as it is in its CRD."""
    generated = kind.model.model_json_schema(by_alias=True, mode="validation")
    schema = structural(generated, generated.get("$defs", {}), kind.name)
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        # The API server checks metadata; a CRD can only bound the name, which must fit into a label's value.
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
    }
    schema["required"] = [name for name in schema["required"] if name not in {"apiVersion", "kind", "metadata"}]
    for name in {"status", "summary", "expectations", "result"} & set(schema["properties"]):
        _remove_defaults(schema["properties"][name])
        _add_bounds(schema["properties"][name])
    return schema


def crd(kind: CustomResource) -> dict[str, Any]:
    """Return the kind's CustomResourceDefinition."""
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [column.to_crd() for column in kind.columns],
        "schema": {"openAPIV3Schema": schema_of(kind)},
    }
    if kind.status:
        version["subresources"] = {"status": {}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": [kind.short],
                "categories": ["accelbench"],
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def structural(node: Mapping[str, Any], definitions: Mapping[str, Any], where: str) -> Schema:
    """Convert `node` to a structural schema, with references inlined; raises NotStructuralError."""
    node = _inline(node, definitions)
    if "anyOf" in node:
        return _convert_union(node, definitions, where)
    if unknown := set(node) - set(COPIED) - DROPPED - {"$defs"}:
        raise NotStructuralError(f"{where}: no structural schema has {', '.join(sorted(unknown))}")
    if node.get("type") == "number":
        raise NotStructuralError(f"{where}: no floats: use a DecimalString")
    schema = {key: node[key] for key in COPIED if key in node}
    if "const" in node:
        schema["enum"] = [node["const"]]
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())
    if isinstance(node.get("properties"), dict):
        schema["properties"] = {
            name: _with_default(structural(field, definitions, f"{where}.{name}"), field)
            for name, field in node["properties"].items()
        }
    elif isinstance(node.get("additionalProperties"), dict):
        schema["additionalProperties"] = structural(node["additionalProperties"], definitions, f"{where}[]")
    elif node.get("type") == "object" and ANY_FIELDS not in node:
        raise NotStructuralError(f"{where}: an object needs properties, or one type for its values")
    if "items" in node:
        schema["items"] = structural(node["items"], definitions, f"{where}[]")
        schema.setdefault("x-kubernetes-list-type", "atomic")
    return schema


def _inline(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Return `node` with the definition that it refers to merged in; its own keywords take precedence, rules add up."""
    if "$ref" not in node:
        return dict(node)
    target = _inline(definitions[node["$ref"].removeprefix("#/$defs/")], definitions)
    merged = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    rules = [*target.get(EXTENSION, ()), *node.get(EXTENSION, ())]
    return merged | ({EXTENSION: rules} if rules else {})


def _convert_union(node: Schema, definitions: Mapping[str, Any], where: str) -> Schema:
    """Convert a union: `X | None` is X, which may be absent; `int | str` is Kubernetes' int-or-string.

    Raises:
        NotStructuralError: It is another union.
    """
    choices = [_inline(choice, definitions) for choice in node["anyOf"]]
    choices = [choice for choice in choices if choice.get("type") != "null"]
    own = {key: value for key, value in node.items() if key != "anyOf"}
    if len(choices) == 1:
        return structural({**choices[0], **own}, definitions, where)
    if "anyOf" in choices[0] or {choice.get("type") for choice in choices} != {"integer", "string"}:
        raise NotStructuralError(f"{where}: int-or-string is the only union in a structural schema")
    both: Schema = {}
    for part in [*choices, own]:
        both |= {key: part[key] for key in COPIED if key in part and key != "type"}
    return {**both, "x-kubernetes-int-or-string": True}


def _with_default(schema: Schema, node: Mapping[str, Any]) -> Schema:
    """Return `schema` with the default of `node`, unless it is empty; a model's default is that of its fields."""
    default = node.get("default")
    if default is None or default in ("", [], {}):
        return schema
    if isinstance(default, dict):
        fields = schema["properties"].items()
        default = {name: field["default"] for name, field in fields if "default" in field}
    return {**schema, "default": default}


def _remove_defaults(schema: Schema) -> None:
    """Remove the defaults of a schema, its properties and its items: status and results hold what was reported."""
    schema.pop("default", None)
    for inner in [*schema.get("properties", {}).values(), schema.get("items")]:
        if inner is not None:
            _remove_defaults(inner)


def _add_bounds(schema: Schema) -> None:
    """Add bounds to every string, integer, list and map in a schema that declares none of its own."""
    match schema.get("type"):
        case "string" if "enum" not in schema:
            schema.setdefault("maxLength", MAXIMUM_CHARACTERS)
        case "integer":
            schema.setdefault("minimum", -MAXIMUM_INTEGER)
            schema.setdefault("maximum", MAXIMUM_INTEGER)
        case "array":
            schema.setdefault("maxItems", MAXIMUM_ENTRIES)
        case "object" if "additionalProperties" in schema:
            schema.setdefault("maxProperties", MAXIMUM_ENTRIES)
    for inner in [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]:
        if inner is not None:
            _add_bounds(inner)


def render(kind: CustomResource) -> str:
    """Return the YAML of the kind's CRD, as the generated file has it."""
    text = yaml.dump(crd(kind), Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated by `{COMMAND}` from accelbench/api; do not edit.\n{text}"


class _Plain(yaml.SafeDumper):
    """Dump YAML without anchors: repeated rules are repeated."""

    def ignore_aliases(self, _: object) -> bool:
        return True


def drift(directory: Path, kinds: Sequence[CustomResource] = KINDS) -> str:
    """Return what would change in `directory`, as a unified diff; empty if it is up to date."""
    diffs: list[str] = []
    for kind in kinds:
        path = directory / kind.file
        before = path.read_text() if path.exists() else ""
        diffs += difflib.unified_diff(
            before.splitlines(keepends=True), render(kind).splitlines(keepends=True), f"crds/{kind.file}", "generated"
        )
    return "".join(diffs)


def main(arguments: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    """Write the CRDs, or with `--check` print how they differ from the models; return the exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the files are out of date")
    changes = drift(DIRECTORY)
    if parser.parse_args(arguments).check:
        if changes:
            write(f"{changes}\ncrds/ is out of date; run: {COMMAND}\n")
        return int(bool(changes))
    for kind in KINDS:
        (DIRECTORY / kind.file).write_text(render(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
