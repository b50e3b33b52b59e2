"""Apply `--set PATH=VALUE` to a manifest, as parsed from YAML, before it is checked.

A path is written as in error messages, with or without `spec.` before it: `measurement.rounds.max`,
`workload.parameters.size`, `variants[1].options.mode`. A parameter that is set to several values is swept.
"""

import copy
import difflib
import itertools
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
_WHOLE_NUMBERS = re.compile(r"\s*-?\d+(\s*,\s*-?\d+)+\s*")
"""Several whole numbers, as in `5,10`."""
SIMILARITY = 0.6
"""Minimum of difflib's ratio for a similar name; 0.6 is difflib's default."""


def override(manifest: Any, assignments: Sequence[str]) -> Any:
    """Return a copy of the manifest with every assignment `PATH=VALUE` applied; PATH is a field in its `spec`.

    Raises UsageError for an assignment of another form, and for an unknown path.
    """
    new_manifest = copy.deepcopy(manifest)
    for assignment in assignments:
        path, equals_sign, value = assignment.partition("=")
        path = path.strip().removeprefix("spec.")
        if not equals_sign or not _PATH.fullmatch(path):
            raise UsageError(f'"{assignment}": write PATH=VALUE, as in measurement.rounds.max=5', SET)
        spec = new_manifest.setdefault("spec", {}) if isinstance(new_manifest, dict) else None
        if not isinstance(spec, dict):
            raise UsageError(f'"{assignment}": the manifest has no spec to change', SET)
        # Each match of `_TOKEN` is a pair of a name and an index, one of which is empty.
        keys = [int(index) if index else name for name, index in _TOKEN.findall(path)]
        field_type = _type_at(BenchmarkRunSpec, keys)
        if field_type is None:
            raise UsageError(f'unknown path "{path}"; {_suggest_path(path, keys, spec)}', SET)
        match keys:
            case ["workload", "parameters", str(parameter)]:
                _set_parameter(spec, parameter, _parse_values(value, field_type), path)
            case _:
                _assign(spec, keys, _parse(value, field_type), path)
    return new_manifest


def _parse_values(text: str, field_type: Any) -> Any:
    """Return the value of a parameter; for a text such as `[a, b]` or `5,10`, a list of values to sweep."""
    has_brackets = text.strip().startswith("[")
    if has_brackets or _WHOLE_NUMBERS.fullmatch(text):
        values = _parse(text if has_brackets else f"[{text}]", list[field_type])
        if isinstance(values, list):  # not for malformed YAML, which stays a text
            return values
    return _parse(text, field_type)


def _set_parameter(spec: dict[str, Any], parameter: str, value: Any, path: str) -> None:
    """Set a parameter of the workload in `spec` to a value, or sweep it over a list of values.

    `path` is the path of the parameter, for error messages.
    """
    sweep = spec.get("sweep")
    if not isinstance(sweep, list):
        sweep = []
    other_axes = [axis for axis in sweep if not (isinstance(axis, dict) and axis.get("name") == parameter)]
    if isinstance(value, list):  # a swept parameter has no single value
        workload = spec.get("workload")
        parameters = workload.get("parameters") if isinstance(workload, dict) else None
        if isinstance(parameters, dict):
            parameters.pop(parameter, None)
        spec["sweep"] = [*other_axes, {"name": parameter, "values": value}]
        return
    if sweep:  # a parameter with a single value is not swept
        spec["sweep"] = other_axes
    _assign(spec, ["workload", "parameters", parameter], value, path)


def _type_at(root_type: Any, keys: Sequence[str | int]) -> Any:
    """Return the type of the field at the path `keys` below `root_type`; None if there is no such field."""
    current_type = root_type
    for key in keys:
        current_type = _plain_type(current_type)
        if isinstance(key, int):  # a list in a manifest is a tuple in its model
            current_type = get_args(current_type)[0] if get_origin(current_type) is tuple else None
        elif get_origin(current_type) is dict:
            current_type = get_args(current_type)[1]
        elif current_type is not Any:  # below Any, every name is valid
            current_type = dict(_fields(current_type)).get(key)
        if current_type is None:
            return None
    return current_type


def _plain_type(field_type: Any) -> Any:
    """Return the type X for `X | None`, `X | Y` and `Annotated[X, ...]`; return any other type unchanged."""
    if hasattr(field_type, "__metadata__"):
        return _plain_type(field_type.__origin__)
    if get_origin(field_type) in {Union, types.UnionType}:
        first_type = next(member for member in get_args(field_type) if member is not type(None))
        return _plain_type(first_type)
    return field_type


def _fields(model: Any) -> Iterator[tuple[str, Any]]:
    """Yield the YAML name and the type of each field; nothing if `model` is not a pydantic model."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        for name, field in model.model_fields.items():
            yield field.alias or name, field.annotation


def _parse(text: str, field_type: Any) -> Any:
    """Return the text parsed as YAML or, if `field_type` accepts only strings, the text itself.

    `expectations[0].atLeast=2` sets the string "2". If the type accepts neither the parsed value nor the text, return
    the parsed value, for which the check of the manifest will report the problem.
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
    return parsed


def _assign(spec: Any, keys: Sequence[str | int], value: Any, path: str) -> None:
    """Set the value at `keys` in `spec`, and create missing dictionaries on the way. Error messages quote `path`."""
    container: Any = spec
    for key, next_key in itertools.pairwise(keys):
        _check_container(container, key, path)
        if isinstance(key, str) and container.get(key) is None:
            # An index into a missing list is an error: the next check reports that the list is empty.
            container[key] = [] if isinstance(next_key, int) else {}
        container = container[key]
    last_key = keys[-1]
    _check_container(container, last_key, path)
    container[last_key] = value


def _check_container(container: Any, key: str | int, path: str) -> None:
    """Raise UsageError unless `container` is a list that has the index `key`, or a dictionary for the name `key`."""
    if isinstance(key, int):
        length = len(container) if isinstance(container, list) else 0
        if key >= length:
            raise UsageError(f'"{path}": there is no [{key}]; the manifest lists {length}', SET)
    elif not isinstance(container, dict):
        raise UsageError(f'"{path}": the manifest has no fields where "{key}" should be', SET)


def _suggest_path(path: str, keys: Sequence[str | int], spec: Any) -> str:
    """Return advice on what to write instead of an unknown path, whose parts are `keys`; `spec` is the manifest's."""
    known_paths = sorted(_known_paths(BenchmarkRunSpec, spec, ""))
    longer_paths = [known_path for known_path in known_paths if known_path.endswith(f".{path}")]
    if longer_paths:  # the beginning of the path was left out
        return f"did you mean {longer_paths[0]}?"
    wrong_index = _index_of_unknown_key(keys)
    start, end = list(_TOKEN.finditer(path))[wrong_index].span()
    known_part, wrong_name, part_after = path[:start].rstrip("."), path[start:end], path[end:]
    if known_part:
        type_of_known_part = _type_at(BenchmarkRunSpec, keys[:wrong_index])
        field_names = [name for name, _ in _fields(_plain_type(type_of_known_part))]
        similar_name = _find_similar(wrong_name, field_names)
        if similar_name:
            suggestion = f"{known_part}.{similar_name}"
            whole_suggestion = suggestion + part_after
            return f"did you mean {whole_suggestion if whole_suggestion in known_paths else suggestion}?"
        if field_names:
            return f"{known_part} has {', '.join(field_names)}"
    similar_path = _find_similar(path, known_paths)
    if similar_path:
        return f"did you mean {similar_path}?"
    return f"one of: {', '.join(name for name, _ in _fields(BenchmarkRunSpec))}"


def _index_of_unknown_key(keys: Sequence[str | int]) -> int:
    """Return the index in `keys` of the first key that is no field of the spec."""
    return next(index for index in range(len(keys)) if _type_at(BenchmarkRunSpec, keys[: index + 1]) is None)


def _find_similar(name: str, known_names: Sequence[str]) -> str:
    """Return the most similar name; empty if none is similar."""
    matches = difflib.get_close_matches(name, known_names, n=1, cutoff=SIMILARITY)
    return matches[0] if matches else ""


def _known_paths(field_type: Any, value: Any, path: str) -> Iterator[str]:
    """Yield `path`, which is a field of this type, and every path below it; `path` is "" for the spec itself.

    List indices and dictionary keys come from the field's `value`.
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
