"""Arrays that a step finds outside its arguments: compilers take them for constants, whatever it is given."""

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any

MOST_NAMED = 8
DEEPEST = 3
"""Containers in containers, and functions that call functions of the same file."""


def captured_arrays(step: Callable[..., Any]) -> list[str]:
    """`w (512, 512) float32` for each array in the step's closure, defaults and globals, at most `MOST_NAMED`."""
    named: dict[int, str] = {}
    for name, array in _of_function(step, DEEPEST, set()):
        dtype = str(array.dtype).rpartition(".")[2]
        named.setdefault(id(array), f"{name} {tuple(array.shape)} {dtype}")
    return sorted(named.values())[:MOST_NAMED]


def _of_function(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if isinstance(function, functools.partial):
        for name, value in [*enumerate(function.args), *function.keywords.items()]:
            yield from _arrays(f"argument {name}", value, depth, seen)
        yield from _of_function(function.func, depth, seen)
        return
    plain = inspect.unwrap(function)
    if inspect.ismethod(plain):
        plain = plain.__func__
    if id(plain) in seen or not inspect.isfunction(plain):
        return
    seen.add(id(plain))
    cells = zip(plain.__code__.co_freevars, plain.__closure__ or (), strict=True)
    outside = [(name, cell.cell_contents) for name, cell in cells if _is_set(cell)]
    outside += [(name, plain.__globals__[name]) for name in plain.__code__.co_names if name in plain.__globals__]
    defaults = plain.__defaults__ or ()
    outside += [(f"default {index}", value) for index, value in enumerate(defaults)]
    for name, value in outside:
        yield from _arrays(name, value, depth, seen)


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _arrays(name: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    if inspect.ismodule(value) or inspect.isclass(value):
        return
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        if len(value.shape):
            yield name, value
    elif depth > 0:
        for key, each in _inside(value):
            yield from _arrays(f"{name}{key}", each, depth - 1, seen)
        if callable(value):
            yield from _of_function(value, depth - 1, seen)


def _inside(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        yield from ((f"[{key!r}]", each) for key, each in value.items())
    elif isinstance(value, tuple | list):
        yield from ((f"[{index}]", each) for index, each in enumerate(value))
    elif callable(getattr(value, "named_parameters", None)):  # a torch.nn.Module
        yield from ((f".{key}", each) for key, each in value.named_parameters())
