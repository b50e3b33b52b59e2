"""Name the arrays of a function's result by their paths, such as `params.dense.kernel`.

A path has the keys of dictionaries, the fields of dataclasses and named tuples, and the positions in tuples and lists,
joined by dots. So `a.b` can be the path of a dictionary's key, of a dataclass's field, or of a key that has the dot
itself, as in PyTorch's `state_dict`. A single array is `y`; the items of a tuple are `y0`, `y1`.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from numbers import Number
from typing import Any

from accelbench import frameworks
from accelbench.catalogue.workload_checks import RESULT, InvalidWorkloadError, location, type_of
from accelbench.workload import Tools


def name_results(function: Callable[..., Any], out: Any, tools: Tools | None = None) -> dict[str, Any]:
    """Return the arrays in a function's result by their paths.

    Python's numbers become arrays of the framework, by `tools`, or of NumPy without `tools`.

    Raises:
        InvalidWorkloadError: The result has no array, or anything but arrays and numbers, or two of the same path.
    """
    named: dict[str, Any] = {}
    for path, leaf in _leaves(out, ""):
        name = path or RESULT
        array = _to_array(leaf, tools)
        if array is None:
            prefix = f'"{name}" as ' if path else ""
            raise InvalidWorkloadError(
                f"{location(function)} returned {prefix}{type_of(leaf)}; it has to return arrays, alone or in tuples, "
                "lists, dictionaries and dataclasses"
            )
        if name in named:
            raise InvalidWorkloadError(f'{location(function)} returned two arrays with the path "{name}"')
        named[name] = array
    if not named:
        raise InvalidWorkloadError(f"{location(function)} returned {type_of(out)}; it has to return an array")
    return named


def _to_array(leaf: Any, tools: Tools | None) -> Any:
    """Return an array as it is, a Python number as an array, and None for anything else.

    The number becomes an array of the framework, by `tools`, or of NumPy without `tools`.
    """
    import numpy as np

    if hasattr(leaf, "dtype"):
        return leaf
    if not isinstance(leaf, Number):
        return None
    array = np.asarray(leaf)
    return tools.put({RESULT: array})[RESULT] if tools else array


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the value of everything in nested containers that is neither a container nor None.

    `path` is that of `value`: empty for the whole result.
    """
    items = _items(value)
    if items is None:
        if value is not None:
            yield path, value
        return
    for key, item in items:
        if path:
            yield from _leaves(item, f"{path}.{key}")
        elif isinstance(key, str):
            yield from _leaves(item, key)
        else:  # an index alone is not a name: the items of a tuple are y0, y1
            yield from _leaves(item, f"{RESULT}{key}")


def _items(value: Any) -> Iterator[tuple[str | int, Any]] | None:
    """Return the items of a container, each with its key, field name or index; None if the value is not a container."""
    if hasattr(value, "dtype"):  # an array
        return None
    if isinstance(value, Mapping):
        return ((str(key), item) for key, item in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields") and not _is_of_framework(value):
        return zip(value._fields, value, strict=True)
    if isinstance(value, tuple | list):
        return iter(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return iter(_data_fields(value).items())
    return None


def _is_of_framework(value: Any) -> bool:
    """Return True for an instance of a framework's own class, such as JAX's `EighResult`.

    Such a named tuple counts as a plain tuple, because each framework names the same parts differently.
    """
    package = type(value).__module__.partition(".")[0]
    return package in {framework.package for framework in frameworks.every()}


def _data_fields(value: Any) -> dict[str, Any]:
    """Return a dataclass's fields that hold data: no settings, names or functions."""
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        # JAX marks settings by `static`, flax by `pytree_node`.
        is_setting = field.metadata.get("static", False) or not field.metadata.get("pytree_node", True)
        item = getattr(value, field.name)
        is_array_or_container = hasattr(item, "dtype") or _items(item) is not None  # even if it is callable
        is_name_or_function = isinstance(item, str) or callable(item)
        is_data = is_array_or_container or not is_name_or_function
        if is_data and not is_setting:
            fields[field.name] = item
    return fields


def without_dataclasses(value: Any) -> Any:
    """Return a result with a dictionary in place of each dataclass, for frameworks that return only known types.

    An instance of a subclass of a dictionary, tuple or list stays as it is, unless it is a named tuple.
    """
    if hasattr(value, "dtype"):  # an array
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type | Mapping):
        return {name: without_dataclasses(item) for name, item in _data_fields(value).items()}
    if type(value) is dict:
        return {key: without_dataclasses(item) for key, item in value.items()}
    if type(value) in {tuple, list}:
        return type(value)(without_dataclasses(item) for item in value)
    is_named_tuple = isinstance(value, tuple) and hasattr(value, "_fields")
    if is_named_tuple:
        return type(value)(*(without_dataclasses(item) for item in value))
    return value
