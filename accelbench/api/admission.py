"""Check a manifest as the API server would, without a server: the same refusals, in the same words.

The checks follow the schema of the CRD in the server's order. If there are unknown fields, only they are reported.
Otherwise nulls are dropped, defaults are filled in and every bound is checked; then the CEL rules are checked, unless a
field is missing or has a wrong type. One refusal differs: integers beyond 64 bits, which the server reads as fractions,
are refused as too large here. Wording: k8s.io/kube-openapi `pkg/validation/errors`, k8s.io/apimachinery
`pkg/util/validation/field` (1.37).
"""

import copy
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from accelbench.api.crd import CustomResource, Schema, schema_of
from accelbench.api.metadata import FIELDS as METADATA_FIELDS
from accelbench.api.metadata import metadata_refusals
from accelbench.api.rules import ANY_FIELDS_KEYWORD, RULES, RULES_KEYWORD
from accelbench.problem import Problem, suggest_name

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True)
class Refusal(Problem):
    """Describe a problem in the API server's words."""

    blocking: bool = False
    """True if the server then skips all CEL rules of the manifest."""
    unshown_path: str = ""
    """Path of the field if the message already names the field; `path` is then empty, so that it is shown only once."""


def refusals(kind: CustomResource, manifest: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return the problems for which the API server would refuse to create `manifest`; empty if it would accept it."""
    schema = schema_of(kind)
    # Like the server, report unknown fields alone, and check rules only if no refusal is blocking.
    unknown_fields = tuple(_refuse_unknown_fields(schema, manifest, ""))
    if unknown_fields:
        return unknown_fields
    stored = to_stored(kind, manifest)
    problems = [*metadata_refusals(stored.get("metadata")), *_check_value(schema, stored, "")]
    is_blocked = any(isinstance(problem, Refusal) and problem.blocking for problem in problems)
    if not is_blocked:
        problems += _check_rules(schema, stored, "")
    return tuple(problems)


def to_stored(kind: CustomResource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `manifest` as the API server would store it: without nulls, with defaults."""
    stored = copy.deepcopy(dict(manifest))
    if kind.status:
        stored.pop("status", None)  # the server ignores the status of an object that is created
    _drop_nulls_and_fill_defaults(schema_of(kind), stored)
    return stored


def _refuse_unknown_fields(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield a refusal for each field, at any depth of the value at `path`, that the schema does not declare.

    The server refuses such fields only for clients that ask for strict validation, as kubectl does.
    """
    allows_any_fields = schema.get(ANY_FIELDS_KEYWORD)
    if allows_any_fields:
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _refuse_unknown_fields(schema.get("items", {}), item, f"{path}[{index}]")
    elif isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, field_value in value.items():
            field_path = _child_path(path, name)
            field_schema = properties.get(name, schema.get("additionalProperties"))
            if field_path == "metadata":  # the API server knows the fields of metadata without the schema
                yield from _refuse_unknown_metadata(field_value)
            elif field_schema is not None:
                yield from _refuse_unknown_fields(field_schema, field_value, field_path)
            else:
                if properties:
                    advice = suggest_name(name, properties)
                else:  # the value should not be an object at all
                    advice = f"{path} must be of type {schema.get('type', 'string')}"
                yield Refusal("", f'unknown field "{field_path}"; {advice}', unshown_path=field_path)


def _refuse_unknown_metadata(metadata: Any) -> Iterator[Refusal]:
    """Yield a refusal for each unknown field of the metadata."""
    if not isinstance(metadata, dict):
        return  # `_check_type` refuses it
    for name in metadata:
        if name not in METADATA_FIELDS:
            field_path = f"metadata.{name}"
            advice = suggest_name(name, METADATA_FIELDS)
            yield Refusal("", f'unknown field "{field_path}"; {advice}', unshown_path=field_path)


def _drop_nulls_and_fill_defaults(schema: Schema, value: Any) -> None:
    """Remove nulls from `value` and add the schema's defaults, in place."""
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        other_fields = schema.get("additionalProperties", {})
        null_names = [name for name, field_value in value.items() if field_value is None]
        for name in null_names:
            del value[name]
        for name, field_schema in properties.items():
            if "default" in field_schema:
                value.setdefault(name, copy.deepcopy(field_schema["default"]))
        for name, field_value in value.items():
            _drop_nulls_and_fill_defaults(properties.get(name, other_fields), field_value)
    elif isinstance(value, list):
        for item in value:
            _drop_nulls_and_fill_defaults(schema.get("items", {}), item)


def _check_value(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield a refusal wherever the value at `path`, or a value inside it, violates the schema."""
    yield from _check_type(schema, value, path)
    if isinstance(value, str):
        yield from _check_string(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _check_number(schema, value, path)
    elif isinstance(value, list):
        yield from _check_list(schema, value, path)
    elif isinstance(value, dict):
        yield from _check_object(schema, value, path)
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(quote_json(choice) for choice in schema["enum"])
        yield Refusal(path, f"Unsupported value: {quote_json(value)}: supported values: {supported}", blocking=True)


def _check_type(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield a refusal if the schema declares a type and the value has another type."""
    is_int_or_string = schema.get("x-kubernetes-int-or-string")
    # The server's message joins several types by a comma.
    declared_type = "integer,string" if is_int_or_string else schema.get("type")
    actual_type = "null" if value is None else JSON_TYPES[type(value)]
    if declared_type is not None and actual_type not in declared_type.split(","):
        text = f'Invalid value: "{actual_type}": {path} in body must be of type {declared_type}: "{actual_type}"'
        yield Refusal(path, text, blocking=True)


def _check_string(schema: Schema, value: str, path: str) -> Iterator[Refusal]:
    """Yield a refusal if the string is too long, too short or does not match the pattern; only the first of these."""
    maximum = schema.get("maxLength")
    minimum = schema.get("minLength", 0)
    if maximum is not None and len(value) > maximum:
        # The API server counts characters, although its message names bytes.
        yield Refusal(path, f"Too long: may not be more than {maximum} byte{_plural_ending(maximum)}", blocking=True)
    elif len(value) < minimum:
        yield _refuse_value(path, value, f"should be at least {minimum} chars long")
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield _refuse_value(path, value, f"should match '{schema['pattern']}'")


def _check_number(schema: Schema, value: float, path: str) -> Iterator[Refusal]:
    """Yield a refusal if the value is too large or too small."""
    maximum, minimum = schema.get("maximum"), schema.get("minimum")
    if maximum is not None and value > maximum:
        yield _refuse_value(path, value, f"should be less than or equal to {maximum}")
    if minimum is not None and value < minimum:
        yield _refuse_value(path, value, f"should be greater than or equal to {minimum}")


def _check_list(schema: Schema, value: list[Any], path: str) -> Iterator[Refusal]:
    """Yield a refusal wherever a list, or a value inside it, violates the schema."""
    for index, item in enumerate(value):
        yield from _check_value(schema.get("items", {}), item, f"{path}[{index}]")
    minimum = schema.get("minItems", 0)
    if len(value) < minimum:
        yield _refuse_value(path, len(value), f"should have at least {minimum} items")
    yield from _check_count(path, len(value), schema.get("maxItems"))
    if schema.get("x-kubernetes-list-type") == "set":
        items_as_json = [json.dumps(item) for item in value]
        for index, item in enumerate(value):
            # Like the server, refuse an item's second occurrence only, not its third or fourth.
            if items_as_json[:index].count(items_as_json[index]) == 1:
                yield Refusal(f"{path}[{index}]", f"Duplicate value: {quote_json(item)}")


def _check_object(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Refusal]:
    """Yield a refusal wherever an object, or a value inside it, violates the schema."""
    yield from _check_count(path, len(value), schema.get("maxProperties"))
    properties = schema.get("properties", {})
    for name, field_value in value.items():
        field_schema = properties.get(name, schema.get("additionalProperties"))
        if field_schema is not None:
            yield from _check_value(field_schema, field_value, _child_path(path, name))
    for name in schema.get("required", ()):
        if name not in value:
            yield Refusal(_child_path(path, name), "Required value", blocking=True)


def _check_count(path: str, count: int, maximum: int | None) -> Iterator[Refusal]:
    """Yield a refusal if there are more than `maximum` items or fields; `maximum` is None if there is no limit."""
    if maximum is not None and count > maximum:
        item_or_items = f"item{_plural_ending(maximum)}"
        yield Refusal(path, f"Too many: {count}: must have at most {maximum} {item_or_items}", blocking=True)


def _check_rules(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield a refusal for each CEL rule that the value at `path`, or any value inside it, breaks."""
    for validation in schema.get(RULES_KEYWORD, ()):
        rule = RULES[validation["rule"]]
        message = rule.refusal(value)
        if message is None:
            continue
        if rule.forbidden:
            text = f"Forbidden: {message}"
        elif isinstance(value, dict | list):
            text = f"Invalid value: {message}"
        else:
            text = f"Invalid value: {quote_json(value)}: {message}"
        yield Refusal(path + rule.field_path, text)
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for name, field_value in value.items():
            yield from _check_rules(properties.get(name, {}), field_value, _child_path(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _check_rules(schema.get("items", {}), item, f"{path}[{index}]")


def _refuse_value(path: str, value: Any, requirement: str) -> Refusal:
    """Return the refusal of the value at `path`; `requirement` is, for instance, `should be at least 1 chars long`."""
    return Refusal(path, f"Invalid value: {quote_json(value)}: {path} in body {requirement}")


def quote_json(value: Any) -> str:
    """Return a value as compact JSON, as in the API server's messages."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _child_path(parent_path: str, name: str) -> str:
    return f"{parent_path}.{name}" if parent_path else name


def _plural_ending(count: int) -> str:
    return "" if count == 1 else "s"
