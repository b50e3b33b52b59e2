"""Find arrays that a step captures instead of taking as arguments: compilers treat them as constants."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

MAXIMUM_ARRAYS = 8
MAXIMUM_DEPTH = 3
"""Maximum nesting of containers, and of functions that use other functions."""


def captured_arrays(step: Callable[..., Any]) -> list[str]:
    """Describe arrays in the step's closure, defaults and globals, at most `MAXIMUM_ARRAYS`: `w (512, 512) float32`."""
    named: dict[int, str] = {}
    for name, array in _captured_by(step, MAXIMUM_DEPTH, set()):
        dtype = str(array.dtype).rpartition(".")[2]
        named.setdefault(id(array), f"{name} {tuple(array.shape)} {dtype}")
    return sorted(named.values())[:MAXIMUM_ARRAYS]


def _captured_by(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield name and array of each array that a function captures, itself or through functions that it uses."""
    if isinstance(function, functools.partial):
        for name, value in [*enumerate(function.args), *function.keywords.items()]:
            yield from _arrays(f"argument {name}", value, depth, seen)
        yield from _captured_by(function.func, depth, seen)
        return
    unwrapped = inspect.unwrap(function)
    if inspect.ismethod(unwrapped):
        unwrapped = unwrapped.__func__
    if id(unwrapped) in seen or not inspect.isfunction(unwrapped):
        return
    seen.add(id(unwrapped))
    cells = zip(unwrapped.__code__.co_freevars, unwrapped.__closure__ or (), strict=True)
    captured = [(name, cell.cell_contents) for name, cell in cells if _is_set(cell)]
    captured += [
        (name, unwrapped.__globals__[name]) for name in unwrapped.__code__.co_names if name in unwrapped.__globals__
    ]
    defaults = unwrapped.__defaults__ or ()
    captured += [(f"default {index}", value) for index, value in enumerate(defaults)]
    for name, value in captured:
        yield from _arrays(name, value, depth, seen)


def _is_set(cell: Any) -> bool:
    """Return True if a closure's cell holds a value; that of a name that is not assigned yet is empty."""
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _arrays(name: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Yield name and array of each array in a captured value; scalars, modules and classes have none."""
    if inspect.ismodule(value) or inspect.isclass(value):
        return
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if len(value.shape):
            yield name, value
    elif depth > 0:
        for key, item in _items(value):
            yield from _arrays(f"{name}{key}", item, depth - 1, seen)
        if callable(value):
            yield from _captured_by(value, depth - 1, seen)


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a container and the parameters of a torch.nn.Module, each with its suffix of the name."""
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", item) for key, item in value.items())
    elif isinstance(value, tuple | list):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    elif callable(getattr(value, "named_parameters", None)):  # a torch.nn.Module
        yield from ((f".{key}", parameter) for key, parameter in value.named_parameters())
