"""Apply `--set PATH=VALUE` to a manifest, as parsed from YAML, before it is checked.

A path is written as in error messages, with or without `spec.` before it: `measurement.rounds.max`,
`workload.parameters.size`, `variants[1].options.mode`.
"""

import copy
import difflib
import re
import types
from collections.abc import Iterator, Sequence
from typing import Any, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, TypeAdapter, ValidationError

from accelbench.api.run import BenchmarkRunSpec
from accelbench.local.errors import UsageError

SET = "--set"
_TOKEN = re.compile(r"([^.\[\]=]+)|\[(\d+)\]")
"""One step of a path: a field's name (group 1), or the index in brackets (group 2)."""
_PATH = re.compile(r"[^.\[\]=]+(\[\d+\])*(\.[^.\[\]=]+(\[\d+\])*)*")
"""A whole path: names separated by points, each with any number of indices after it."""
SIMILARITY = 0.6
"""Minimum of difflib's ratio for a similar name; 0.6 is difflib's default."""


def override(manifest: Any, assignments: Sequence[str]) -> Any:
    """Return a copy of the manifest with every `PATH=VALUE` set below `spec`."""
    changed = copy.deepcopy(manifest)
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        path = path.strip().removeprefix("spec.")
        if not equals or not _PATH.fullmatch(path):
            raise UsageError(f'"{assignment}": write PATH=VALUE, as in measurement.rounds.max=5', SET)
        spec = changed.setdefault("spec", {}) if isinstance(changed, dict) else None
        if not isinstance(spec, dict):
            raise UsageError(f'"{assignment}": the manifest has no spec to change', SET)
        keys = [int(index) if index else name for name, index in _TOKEN.findall(path)]
        field_type = _type_at(BenchmarkRunSpec, keys)
        if field_type is None:
            raise UsageError(f'unknown path "{path}"; {_suggest_path(path, keys, spec)}', SET)
        _assign(spec, keys, _parse(value, field_type), path)
    return changed


def _type_at(root_type: Any, keys: Sequence[str | int]) -> Any:
    """Return the type of the field at `keys` below `root_type`, or None."""
    current_type = root_type
    for key in keys:
        current_type = _plain_type(current_type)
        if isinstance(key, int):
            current_type = get_args(current_type)[0] if get_origin(current_type) is tuple else None
        elif get_origin(current_type) is dict:
            current_type = get_args(current_type)[1]
        elif current_type is not Any:  # below Any, every name is valid
            current_type = dict(_fields(current_type)).get(key)
        if current_type is None:
            return None
    return current_type


def _plain_type(field_type: Any) -> Any:
    """Return X for `X | None`, `X | Y` and `Annotated[X, ...]`."""
    if hasattr(field_type, "__metadata__"):
        return _plain_type(field_type.__origin__)
    if get_origin(field_type) in {Union, types.UnionType}:
        first_type = next(member for member in get_args(field_type) if member is not type(None))
        return _plain_type(first_type)
    return field_type


def _fields(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the YAML name and the type of each field of a pydantic model."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            yield field.alias or name, field.annotation


def _parse(text: str, field_type: Any) -> Any:
    """Parse the text as YAML, or keep it if the field takes strings.

    The `2` of `expectations[0].atLeast=2` stays a string.
    """
    try:
        parsed = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    adapter = TypeAdapter(field_type)
    for candidate in (parsed, text):
        try:
            adapter.validate_python(candidate)
        except ValidationError:
            continue
        return candidate
    return parsed  # the check of the manifest reports the problem


def _assign(spec: Any, keys: Sequence[str | int], value: Any, path: str) -> None:
    """Set the value at `keys` in `spec`; create missing dictionaries and lists."""
    container: Any = spec
    next_keys = [*keys[1:], None]  # None follows the last key
    for key, next_key in zip(keys, next_keys, strict=True):
        if isinstance(key, int) and not (isinstance(container, list) and key < len(container)):
            length = len(container) if isinstance(container, list) else 0
            raise UsageError(f'"{path}": there is no [{key}]; the manifest lists {length}', SET)
        if isinstance(key, str) and not isinstance(container, dict):
            raise UsageError(f'"{path}": the manifest has no fields where "{key}" should be', SET)
        if next_key is None:
            container[key] = value
        elif isinstance(key, str) and container.get(key) is None:
            container[key] = [] if isinstance(next_key, int) else {}
        container = container[key]


def _suggest_path(path: str, keys: Sequence[str | int], spec: Any) -> str:
    """Describe what to write instead of an unknown path."""
    known_paths = sorted(_known_paths(BenchmarkRunSpec, spec, ""))
    longer_paths = [known for known in known_paths if known.endswith((f".{path}", f"].{path}"))]
    if longer_paths:
        return f"did you mean {longer_paths[0]}?"
    wrong_index = _index_of_unknown_key(keys)
    start, end = list(_TOKEN.finditer(path))[wrong_index].span()
    parent = path[:start].rstrip(".")
    parent_type = _type_at(BenchmarkRunSpec, keys[:wrong_index])
    parent_fields = [name for name, _ in _fields(_plain_type(parent_type))]
    similar_field = _find_similar(path[start:end], parent_fields)
    if parent and similar_field:
        suggestion = f"{parent}.{similar_field}"
        # Keep the keys after the wrong one, if they exist below the similar field.
        whole_path = suggestion + path[end:]
        if whole_path in known_paths:
            suggestion = whole_path
        return f"did you mean {suggestion}?"
    if parent and parent_fields:
        return f"{parent} has {', '.join(parent_fields)}"
    similar_path = _find_similar(path, known_paths)
    if similar_path:
        return f"did you mean {similar_path}?"
    return f"one of: {', '.join(name for name, _ in _fields(BenchmarkRunSpec))}"


def _index_of_unknown_key(keys: Sequence[str | int]) -> int:
    """Return the index of the first key without a field in the spec."""
    return next(index for index in range(len(keys)) if _type_at(BenchmarkRunSpec, keys[: index + 1]) is None)


def _find_similar(name: str, known_names: Sequence[str]) -> str:
    """Return the most similar name; empty if none is similar."""
    matches = difflib.get_close_matches(name, known_names, n=1, cutoff=SIMILARITY)
    return matches[0] if matches else ""


def _known_paths(field_type: Any, value: Any, path: str) -> Iterator[str]:
    """Yield every path that can be set in a field at `path`.

    List indices and dictionary keys come from `value`.
    """
    if path:
        yield path
    field_type = _plain_type(field_type)
    if get_origin(field_type) is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _known_paths(get_args(field_type)[0], item, f"{path}[{index}]")
    elif get_origin(field_type) is dict and isinstance(value, dict):
        for key in value:
            yield f"{path}.{key}"
    for name, inner_type in _fields(field_type):
        inner_value = value.get(name) if isinstance(value, dict) else None
        inner_path = f"{path}.{name}" if path else name
        yield from _known_paths(inner_type, inner_value, inner_path)
