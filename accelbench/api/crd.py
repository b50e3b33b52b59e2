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
from accelbench.api.rules import ANY_FIELDS_KEYWORD, RULES_KEYWORD, Rule
from accelbench.api.run import IMMUTABLE_FIELDS, BenchmarkRun

DIRECTORY = Path("crds")
"""Relative to the working directory, not to this file: the models may be imported from an installed wheel."""
COMMAND = "python -m accelbench.api.crd"
Schema = dict[str, Any]
MAXIMUM_INTEGER = 2**53 - 1
"""Largest integer that every JSON reader represents exactly."""
MAXIMUM_ENTRIES = 4096
"""Maximum number of entries of lists and maps that declare no maximum."""
MAXIMUM_CHARACTERS = 32 * 1024
"""Maximum length of strings that declare no maximum."""

COPIED_KEYWORDS = (  # they mean the same in JSON schema and in a CRD
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
    RULES_KEYWORD,
    ANY_FIELDS_KEYWORD,
)
# Keywords of JSON schema that `to_structural_schema` converts, or drops because a CRD does not allow them.
CONVERTED_KEYWORDS = {
    "title",
    "default",
    "const",
    "propertyNames",
    "anyOf",
    "$ref",
    "properties",
    "items",
    "additionalProperties",
}


class NotStructuralError(ValueError):
    """Report a model that a structural schema cannot express."""


@dataclass(frozen=True)
class Column:
    """Describe a column of `kubectl get`. A `wide` column is shown only with `--output=wide`."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    wide: bool = False

    def to_crd(self) -> dict[str, Any]:
        """Return the column as an entry of `additionalPrinterColumns`."""
        entry: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        if self.description:
            entry["description"] = self.description
        # kubectl shows columns of priority 0 always, others only with `--output=wide`.
        entry["priority"] = 1 if self.wide else 0
        return entry


@dataclass(frozen=True)
class CustomResource:
    """Describe one of the API's kinds: its model, names and columns."""

    model: type[BaseModel]
    plural: str
    short: str
    columns: tuple[Column, ...]
    status: bool = False
    """True if the status is a subresource."""
    rules: tuple[Rule, ...] = ()
    """CEL rules of the whole object, such as rules on changes that depend on the old status."""

    @property
    def name(self) -> str:
        """Return the kind's name, such as `BenchmarkRun`."""
        return self.model.__name__

    @property
    def file(self) -> str:
        """Return the name of the CRD's generated file."""
        return f"{self.plural}.{GROUP}.yaml"


AGE = Column("Age", ".metadata.creationTimestamp", "date")
FINISHED_MESSAGE = '.status.conditions[?(@.type=="Finished")].message'

KINDS = (
    CustomResource(
        BenchmarkRun,
        plural="benchmarkruns",
        short="bmr",
        status=True,
        rules=IMMUTABLE_FIELDS,
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
            Column("Message", FINISHED_MESSAGE, description="What it waits for, or how it ended.", wide=True),
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
    """Return the OpenAPI v3 schema that the kind's CRD contains."""
    generated = kind.model.model_json_schema(by_alias=True, mode="validation")
    schema = to_structural_schema(generated, generated.get("$defs", {}), kind.name)
    schema["properties"] |= {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        # The API server checks metadata; a CRD can only bound the name, which must fit into a label's value.
        "metadata": {"type": "object", "properties": {"name": {"type": "string", "maxLength": 63}}},
    }
    if kind.rules:
        schema[RULES_KEYWORD] = [rule.register().to_crd() for rule in kind.rules]
    # The API server requires these three itself.
    schema["required"] = [name for name in schema["required"] if name not in {"apiVersion", "kind", "metadata"}]
    # Programs write these fields, not users: they get no defaults, and every value in them has a bound.
    for name in {"status", "summary", "expectations", "result"} & set(schema["properties"]):
        _remove_defaults(schema["properties"][name])
        _add_bounds(schema["properties"][name])
    if kind.status:
        # Without it, kstatus (and so Flux) would regard an object as finished before any operator has seen it.
        schema["properties"]["status"]["default"] = {"observedGeneration": 0}
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


def to_structural_schema(node: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Schema:
    """Convert a JSON schema to a structural schema, which a CRD requires.

    Args:
        node: the JSON schema.
        definitions: the schemas that `node` may refer to, by name.
        path: the field that `node` describes, for messages.
    """
    node = _inline_reference(node, definitions)
    if "anyOf" in node:
        return _convert_union(node, definitions, path)
    _refuse_inexpressible(node, path)
    schema = {key: node[key] for key in COPIED_KEYWORDS if key in node}
    if "const" in node:
        schema["enum"] = [node["const"]]
    if "description" in schema:
        schema["description"] = " ".join(schema["description"].split())  # on one line
    if isinstance(node.get("properties"), dict):
        schema["properties"] = {}
        for name, field in node["properties"].items():
            field_schema = to_structural_schema(field, definitions, f"{path}.{name}")
            schema["properties"][name] = _add_default(field_schema, field)
    elif isinstance(node.get("additionalProperties"), dict):  # a map; a structural schema cannot have both
        schema["additionalProperties"] = to_structural_schema(node["additionalProperties"], definitions, f"{path}[]")
    if "items" in node:
        schema["items"] = to_structural_schema(node["items"], definitions, f"{path}[]")
        schema.setdefault("x-kubernetes-list-type", "atomic")  # without keys, an update replaces the whole list
    return schema


def _refuse_inexpressible(node: Schema, path: str) -> None:
    """Raise NotStructuralError if a structural schema cannot express `node`."""
    unknown_keywords = set(node) - set(COPIED_KEYWORDS) - CONVERTED_KEYWORDS - {"$defs"}
    if unknown_keywords:
        raise NotStructuralError(f"{path}: no structural schema has {', '.join(sorted(unknown_keywords))}")
    if node.get("type") == "number":
        raise NotStructuralError(f"{path}: no floats: use a DecimalString")
    declares_fields = isinstance(node.get("properties"), dict) or isinstance(node.get("additionalProperties"), dict)
    if node.get("type") == "object" and not declares_fields and ANY_FIELDS_KEYWORD not in node:
        raise NotStructuralError(f"{path}: an object needs properties, or one type for its values")


def _inline_reference(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """Return `node` with the definition of its `$ref` merged in.

    A keyword of `node` replaces that of the definition, except that the CEL rules of both apply.
    """
    if "$ref" not in node:
        return dict(node)
    definition_name = node["$ref"].removeprefix("#/$defs/")
    definition = _inline_reference(definitions[definition_name], definitions)
    other_keywords = {key: value for key, value in node.items() if key != "$ref"}
    merged = {**definition, **other_keywords}
    rules = [*definition.get(RULES_KEYWORD, ()), *node.get(RULES_KEYWORD, ())]
    if rules:
        merged[RULES_KEYWORD] = rules
    return merged


def _convert_union(node: Schema, definitions: Mapping[str, Any], path: str) -> Schema:
    """Convert the schema of `X | None` to that of `X`, and the schema of `int | str` to int-or-string.

    Raises NotStructuralError for any other union.
    """
    choices = [_inline_reference(choice, definitions) for choice in node["anyOf"]]
    choices = [choice for choice in choices if choice.get("type") != "null"]
    other_keywords = {key: value for key, value in node.items() if key != "anyOf"}
    if len(choices) == 1:
        return to_structural_schema({**choices[0], **other_keywords}, definitions, path)
    choice_types = {choice.get("type") for choice in choices}
    if choice_types != {"integer", "string"}:
        raise NotStructuralError(f"{path}: int-or-string is the only union in a structural schema")
    merged: Schema = {}
    for keywords in [*choices, other_keywords]:
        merged |= {key: keywords[key] for key in COPIED_KEYWORDS if key in keywords and key != "type"}
    return {**merged, "x-kubernetes-int-or-string": True}


def _add_default(schema: Schema, node: Mapping[str, Any]) -> Schema:
    """Return the structural schema `schema` with the default of `node`, the JSON schema that it was converted from.

    An empty default is left out, because the models read a missing field as empty.
    """
    default = node.get("default")
    if default is None or default in ("", [], {}):
        return schema
    if isinstance(default, dict):  # an object's default consists of the defaults of its fields
        fields = schema["properties"].items()
        default = {name: field["default"] for name, field in fields if "default" in field}
    return {**schema, "default": default}


def _remove_defaults(schema: Schema) -> None:
    """Remove all defaults from a schema, and from the schemas of its fields and list items, in place."""
    schema.pop("default", None)
    for inner_schema in [*schema.get("properties", {}).values(), schema.get("items")]:
        if inner_schema is not None:
            _remove_defaults(inner_schema)


def _add_bounds(schema: Schema) -> None:
    """Add bounds, such as a maximum length, in place to a schema and the schemas inside it that declare none."""
    match schema.get("type"):
        case "string" if "enum" not in schema:  # the values of an enum have known lengths
            schema.setdefault("maxLength", MAXIMUM_CHARACTERS)
        case "integer":
            schema.setdefault("minimum", -MAXIMUM_INTEGER)
            schema.setdefault("maximum", MAXIMUM_INTEGER)
        case "array":
            schema.setdefault("maxItems", MAXIMUM_ENTRIES)
        case "object" if "additionalProperties" in schema:  # a map, whose keys the user chooses
            schema.setdefault("maxProperties", MAXIMUM_ENTRIES)
    inner_schemas = [*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")]
    for inner_schema in inner_schemas:
        if inner_schema is not None:
            _add_bounds(inner_schema)


def render(kind: CustomResource) -> str:
    """Return the content of the kind's generated file: its CRD as YAML."""
    text = yaml.dump(crd(kind), Dumper=_Plain, sort_keys=False, width=120, allow_unicode=True)
    return f"# Generated by `{COMMAND}` from accelbench/api; do not edit.\n{text}"


class _Plain(yaml.SafeDumper):
    """Dump YAML without anchors: a rule that occurs twice is written twice."""

    def ignore_aliases(self, _: object) -> bool:
        """Tell PyYAML to write no object as an alias of another."""
        return True


def drift(directory: Path, kinds: Sequence[CustomResource] = KINDS) -> str:
    """Return a unified diff from the CRD files in the directory to the generated CRDs; empty if all are up to date."""
    diff_lines: list[str] = []
    for kind in kinds:
        path = directory / kind.file
        stored_lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        generated_lines = render(kind).splitlines(keepends=True)
        diff_lines += difflib.unified_diff(stored_lines, generated_lines, f"crds/{kind.file}", "generated")
    return "".join(diff_lines)


def main(arguments: Sequence[str] | None = None, write: Callable[[str], object] = sys.stdout.write) -> int:
    """Write the generated CRDs into crds/ or, with `--check`, print how they differ; return the exit status."""
    parser = argparse.ArgumentParser(prog=COMMAND, description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the files are out of date")
    if parser.parse_args(arguments).check:
        changes = drift(DIRECTORY)
        if changes:
            write(f"{changes}\ncrds/ is out of date; run: {COMMAND}\n")
        return 1 if changes else 0
    for kind in KINDS:
        (DIRECTORY / kind.file).write_text(render(kind))
    return 0


if __name__ == "__main__":
    sys.exit(main())
