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
_PATH = re.compile(r"[^.\[\]=]+(\[\d+\])*(\.[^.\[\]=]+(\[\d+\])*)*")


def override(manifest: Any, assignments: Sequence[str]) -> Any:
    """Return a copy of the manifest with every `PATH=VALUE` applied in order; raises UsageError."""
    changed = copy.deepcopy(manifest)
    for assignment in assignments:
        path, equals, value = assignment.partition("=")
        path = path.strip().removeprefix("spec.")
        if not equals or not _PATH.fullmatch(path):
            raise UsageError(f'"{assignment}": write PATH=VALUE, as in measurement.rounds.max=5', SET)
        if not isinstance(changed, dict) or not isinstance(changed.setdefault("spec", {}), dict):
            raise UsageError(f'"{assignment}": the manifest has no spec to change', SET)
        tokens = [int(index) if index else key for key, index in _TOKEN.findall(path)]
        annotation = _annotation(BenchmarkRunSpec, tokens)
        if annotation is None:
            raise UsageError(f'unknown path "{path}"; {_advice(path, tokens, changed["spec"])}', SET)
        _assign(changed["spec"], tokens, _parse(value, annotation), path)
    return changed


def _annotation(annotation: Any, tokens: Sequence[str | int]) -> Any:
    """Return the type of the field at a path; None if there is no such field."""
    for token in tokens:
        annotation = _unwrapped(annotation)
        if isinstance(token, int):
            annotation = get_args(annotation)[0] if get_origin(annotation) is tuple else None
        elif get_origin(annotation) is dict:
            annotation = get_args(annotation)[1]
        elif annotation is not Any:
            annotation = dict(_fields(annotation)).get(token)
        if annotation is None:
            return None
    return annotation


def _unwrapped(annotation: Any) -> Any:
    """Return X for `X | None` and `Annotated[X, ...]`."""
    if hasattr(annotation, "__metadata__"):
        return _unwrapped(annotation.__origin__)
    if get_origin(annotation) in {Union, types.UnionType}:
        return _unwrapped(next(part for part in get_args(annotation) if part is not type(None)))
    return annotation


def _fields(annotation: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield field.alias or name, field.annotation


def _parse(text: str, annotation: Any) -> Any:
    """Parse the value as YAML; keep the text if the field wants a string, as `expectations[0].atLeast=2` does."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    adapter = TypeAdapter(annotation)
    for candidate in (value, text):
        try:
            adapter.validate_python(candidate)
        except ValidationError:
            continue
        return candidate
    return value


def _assign(spec: Any, tokens: Sequence[str | int], value: Any, path: str) -> None:
    target: Any = spec
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if isinstance(token, int) and not (isinstance(target, list) and token < len(target)):
            length = len(target) if isinstance(target, list) else 0
            raise UsageError(f'"{path}": there is no [{token}]; the manifest lists {length}', SET)
        if isinstance(token, str) and not isinstance(target, dict):
            raise UsageError(f'"{path}": the manifest has no fields where "{token}" should be', SET)
        if following is None:
            target[token] = value
        elif isinstance(token, str) and target.get(token) is None:
            target[token] = [] if isinstance(following, int) else {}
        target = target[token]


def _advice(path: str, tokens: Sequence[str | int], spec: Any) -> str:
    """Suggest a path with the same ending, a field of the valid part, or the most similar path."""
    known = sorted(_paths(BenchmarkRunSpec, spec, ""))
    if ending := [candidate for candidate in known if candidate.endswith((f".{path}", f"].{path}"))]:
        return f"did you mean {ending[0]}?"
    valid = next(count for count in range(len(tokens)) if _annotation(BenchmarkRunSpec, tokens[: count + 1]) is None)
    fields = [name for name, _ in _fields(_unwrapped(_annotation(BenchmarkRunSpec, tokens[:valid])))]
    start, end = list(_TOKEN.finditer(path))[valid].span()
    parent = path[:start].rstrip(".")
    if parent and (near := difflib.get_close_matches(path[start:end], fields, n=1, cutoff=0.6)):
        suggestion = f"{parent}.{near[0]}"
        return f"did you mean {suggestion + path[end:] if suggestion + path[end:] in known else suggestion}?"
    if parent and fields:
        return f"{parent} has {', '.join(fields)}"
    if near := difflib.get_close_matches(path, known, n=1, cutoff=0.6):
        return f"did you mean {near[0]}?"
    return f"one of: {', '.join(name for name, _ in _fields(BenchmarkRunSpec))}"


def _paths(annotation: Any, value: Any, path: str) -> Iterator[str]:
    """Yield every path that can be set; lists have the entries of the manifest."""
    if path:
        yield path
    annotation = _unwrapped(annotation)
    if get_origin(annotation) is tuple and isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths(get_args(annotation)[0], item, f"{path}[{index}]")
    elif get_origin(annotation) is dict and isinstance(value, dict):
        for key in value:
            yield f"{path}.{key}"
    for name, field in _fields(annotation):
        inner = value.get(name) if isinstance(value, dict) else None
        yield from _paths(field, inner, f"{path}.{name}" if path else name)
