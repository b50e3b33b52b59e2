"""Refuse a manifest as the API server would, without one: the same refusals, in the same words.

It walks the schema of the CRD in the server's order. Unknown fields end it; otherwise nulls are dropped, defaults
filled in, every bound checked, and then the rules, unless something is missing or has a wrong type. The one difference:
integers beyond 64 bits, which the server reads as fractions, are called too large here. Wording: k8s.io/kube-openapi
`pkg/validation/errors`, k8s.io/apimachinery `pkg/util/validation/field` (1.37).
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
from accelbench.api.rules import ANY_FIELDS, EXTENSION, RULES
from accelbench.problem import Problem, nearest

TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


@dataclass(frozen=True)
class Refusal(Problem):
    """Describe a problem in the API server's words."""

    blocking: bool = False
    """True if the server checks no rules of the manifest because of it."""
    field: str = ""
    """Field to blame if the message names it instead of the path."""


def refusals(kind: CustomResource, manifest: Mapping[str, Any]) -> tuple[Problem, ...]:
    """Return why the API server would refuse to create `manifest`; empty if it would accept it.

    If it has unknown fields, only these are returned. Rules are not checked if another refusal is `blocking`.
    """
    schema = schema_of(kind)
    if unknown := tuple(_unknown_fields(schema, manifest, "")):
        return unknown
    admitted = defaulted(kind, manifest)
    problems = [*metadata_refusals(admitted.get("metadata")), *_bounds(schema, admitted, "")]
    if not any(isinstance(refusal, Refusal) and refusal.blocking for refusal in problems):
        problems += _broken_rules(schema, admitted, "")
    return tuple(problems)


def defaulted(kind: CustomResource, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return `manifest` as the API server would store it: without nulls, with defaults.

    A status is dropped if the kind has it as a subresource.
    """
    admitted = copy.deepcopy(dict(manifest))
    if kind.status:
        admitted.pop("status", None)
    _fill_defaults(schema_of(kind), admitted)
    return admitted


def _unknown_fields(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield unknown fields, which the server prunes, or refuses for a strict client such as kubectl."""
    if schema.get(ANY_FIELDS):
        return
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown_fields(schema.get("items", {}), item, f"{path}[{index}]")
    elif isinstance(value, dict):
        known = schema.get("properties", {})
        for name, content in value.items():
            field = _child_path(path, name)
            inner = known.get(name, schema.get("additionalProperties"))
            if field == "metadata":
                yield from _unknown_metadata(content)
            elif inner is not None:
                yield from _unknown_fields(inner, content, field)
            else:
                advice = nearest(name, known) if known else f"{path} must be of type {schema.get('type', 'string')}"
                yield Refusal("", f'unknown field "{field}"; {advice}', field=field)


def _unknown_metadata(metadata: Any) -> Iterator[Refusal]:
    """Yield the fields that Kubernetes' metadata does not have."""
    for name in metadata if isinstance(metadata, dict) else ():
        if name not in METADATA_FIELDS:
            field = f"metadata.{name}"
            yield Refusal("", f'unknown field "{field}"; {nearest(name, METADATA_FIELDS)}', field=field)


def _fill_defaults(schema: Schema, value: Any) -> None:
    """Remove nulls from `value` and add the schema's defaults, in place."""
    if isinstance(value, dict):
        known = schema.get("properties", {})
        rest = schema.get("additionalProperties", {})
        for name in [name for name, content in value.items() if content is None]:
            del value[name]
        for name, field in known.items():
            if "default" in field:
                value.setdefault(name, copy.deepcopy(field["default"]))
        for name, content in value.items():
            _fill_defaults(known.get(name, rest), content)
    elif isinstance(value, list):
        for item in value:
            _fill_defaults(schema.get("items", {}), item)


def _bounds(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield violations of types, bounds, patterns and enums; a bound is checked only for a value of its type."""
    yield from _type(schema, value, path)
    if isinstance(value, str):
        yield from _string(schema, value, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number(schema, value, path)
    elif isinstance(value, list):
        yield from _list(schema, value, path)
    elif isinstance(value, dict):
        yield from _object(schema, value, path)
    if "enum" in schema and value not in schema["enum"]:
        supported = ", ".join(quoted(choice) for choice in schema["enum"])
        yield Refusal(path, f"Unsupported value: {quoted(value)}: supported values: {supported}", blocking=True)


def _type(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield a refusal if the value's type is not the one that the schema declares, if any."""
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    actual = "null" if value is None else TYPES[type(value)]
    if wanted is not None and actual not in wanted.split(","):
        text = f'Invalid value: "{actual}": {path} in body must be of type {wanted}: "{actual}"'
        yield Refusal(path, text, blocking=True)


def _string(schema: Schema, value: str, path: str) -> Iterator[Refusal]:
    """Yield the first violation of a string: maximum length, minimum length, pattern."""
    maximum = schema.get("maxLength")
    if maximum is not None and len(value) > maximum:
        yield Refusal(path, f"Too long: may not be more than {maximum} byte{_plural(maximum)}", blocking=True)
    elif len(value) < (minimum := schema.get("minLength", 0)):
        yield _invalid(path, value, f"should be at least {minimum} chars long")
    elif "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        yield _invalid(path, value, f"should match '{schema['pattern']}'")


def _number(schema: Schema, value: float, path: str) -> Iterator[Refusal]:
    """Yield violations of maximum and minimum."""
    if value > schema.get("maximum", value):
        yield _invalid(path, value, f"should be less than or equal to {schema['maximum']}")
    if value < schema.get("minimum", value):
        yield _invalid(path, value, f"should be greater than or equal to {schema['minimum']}")


def _list(schema: Schema, value: list[Any], path: str) -> Iterator[Refusal]:
    """Yield violations in the items and of the list's length; in a set, also an item's first repetition."""
    for index, item in enumerate(value):
        yield from _bounds(schema.get("items", {}), item, f"{path}[{index}]")
    if len(value) < (minimum := schema.get("minItems", 0)):
        yield _invalid(path, len(value), f"should have at least {minimum} items")
    yield from _check_count(path, len(value), schema.get("maxItems"))
    if schema.get("x-kubernetes-list-type") == "set":
        seen = [json.dumps(item) for item in value]
        for index, item in enumerate(value):
            if seen[:index].count(seen[index]) == 1:
                yield Refusal(f"{path}[{index}]", f"Duplicate value: {quoted(item)}")


def _object(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Refusal]:
    """Yield violations in the fields, too many fields, and missing ones that are required."""
    yield from _check_count(path, len(value), schema.get("maxProperties"))
    known = schema.get("properties", {})
    for name, content in value.items():
        inner = known.get(name, schema.get("additionalProperties"))
        if inner is not None:
            yield from _bounds(inner, content, _child_path(path, name))
    for name in schema.get("required", ()):
        if name not in value:
            yield Refusal(_child_path(path, name), "Required value", blocking=True)


def _check_count(path: str, count: int, maximum: int | None) -> Iterator[Refusal]:
    """Yield a refusal if a list or map has more than `maximum` entries; None is no limit."""
    if maximum is not None and count > maximum:
        yield Refusal(path, f"Too many: {count}: must have at most {maximum} item{_plural(maximum)}", blocking=True)


def _broken_rules(schema: Schema, value: Any, path: str) -> Iterator[Refusal]:
    """Yield the rules that the value or a value in it breaks."""
    for validation in schema.get(EXTENSION, ()):
        rule = RULES[validation["rule"]]
        message = rule.refusal(value)
        if message is not None:
            scalar = "" if isinstance(value, dict | list) else f" {quoted(value)}:"
            text = f"Forbidden: {message}" if rule.forbidden else f"Invalid value:{scalar} {message}"
            yield Refusal(path + rule.field_path, text)
    if isinstance(value, dict):
        for name, content in value.items():
            yield from _broken_rules(schema.get("properties", {}).get(name, {}), content, _child_path(path, name))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _broken_rules(schema.get("items", {}), item, f"{path}[{index}]")


def _invalid(path: str, value: Any, detail: str) -> Refusal:
    """Return the refusal of a value that has the right type."""
    return Refusal(path, f"Invalid value: {quoted(value)}: {path} in body {detail}")


def quoted(value: Any) -> str:
    """Quote a value as the API server does."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _plural(count: int) -> str:
    return "" if count == 1 else "s"
