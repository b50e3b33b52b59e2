"""Find arrays that a step captures instead of taking as arguments: compilers treat them as constants."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

MAXIMUM_ARRAYS = 8
MAXIMUM_DEPTH = 3
"""Maximum nesting of containers, and of functions that use other functions."""


def captured_arrays(step: Callable[..., Any]) -> list[str]:
    """Describe the arrays that a step captures, such as `w (512, 512) float32`."""
    descriptions: dict[int, str] = {}
    for name, array in _captured_by(step, MAXIMUM_DEPTH, set()):
        dtype = str(array.dtype).rpartition(".")[2]  # `float32` of `torch.float32`
        # An array may have several names.
        descriptions.setdefault(id(array), f"{name} {tuple(array.shape)} {dtype}")
    return sorted(descriptions.values())[:MAXIMUM_ARRAYS]


def _captured_by(function: Any, depth: int, visited: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array for each array that a function captures.

    `visited` contains the ids of functions that have been searched.
    """
    if isinstance(function, functools.partial):
        for name, value in [*enumerate(function.args), *function.keywords.items()]:
            yield from _arrays_in(f"argument {name}", value, depth, visited)
        yield from _captured_by(function.func, depth, visited)
        return
    plain_function = inspect.unwrap(function)
    if inspect.ismethod(plain_function):
        plain_function = plain_function.__func__
    if id(plain_function) in visited or not inspect.isfunction(plain_function):
        return
    visited.add(id(plain_function))
    code, module_globals = plain_function.__code__, plain_function.__globals__
    cells = zip(code.co_freevars, plain_function.__closure__ or (), strict=True)
    captured = [(name, cell.cell_contents) for name, cell in cells if _has_value(cell)]
    captured += [(name, module_globals[name]) for name in code.co_names if name in module_globals]
    defaults = plain_function.__defaults__ or ()
    captured += [(f"default {index}", value) for index, value in enumerate(defaults)]
    for name, value in captured:
        yield from _arrays_in(name, value, depth, visited)


def _has_value(cell: Any) -> bool:
    """Return True if a cell of a closure has a value."""
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _arrays_in(name: str, value: Any, depth: int, visited: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield the name and the array for each array in a captured value."""
    if inspect.ismodule(value) or inspect.isclass(value):
        return
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if len(value.shape):  # not a scalar
            yield name, value
    elif depth > 0:
        for suffix, item in _items(value):
            yield from _arrays_in(f"{name}{suffix}", item, depth - 1, visited)
        if callable(value):
            yield from _captured_by(value, depth - 1, visited)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container, each with its suffix: `['key']`, `[0]` or `.weight`."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, tuple | list):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif callable(getattr(value, "named_parameters", None)):  # a torch.nn.Module
        yield from ((f".{key}", parameter) for key, parameter in value.named_parameters())
