"""Find what a function captures instead of taking it as an argument: arrays, modules and other objects.

A function captures by its closure, its globals, its defaults, `functools.partial`, or the object whose method it is.
"""

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, MethodType
from typing import Any

from accelbench import frameworks
from accelbench_runner.outputs import type_name

MAXIMUM_ARRAYS = 8
MAXIMUM_DEPTH = 8
"""Maximum nesting of containers, objects, and functions that use other functions."""
MAXIMUM_ITEMS = 1000
"""Number of items above which a list or tuple is taken for data, and not searched."""


@dataclass(frozen=True)
class Place:
    """Describe a place where a function keeps a value."""

    name: str
    """Name of the value, for people, such as `params['w']`."""
    value: Any
    replace: Callable[[Any], None]
    """Stores another value in the place; does nothing if the place cannot change."""


def captured_arrays(step: Callable[..., Any]) -> list[str]:
    """Return the name, shape and type of each array that a step captures, such as `w (512, 512) float32`.

    At most `MAXIMUM_ARRAYS` are returned, in alphabetical order.
    """
    descriptions: dict[int, str] = {}
    for place in find_places(step, _is_array):
        array = place.value
        if array.shape:  # not a scalar, nor a Keras object without a shape of its own
            # An array that is captured under several names is described once, by the first.
            descriptions.setdefault(id(array), f"{place.name} {tuple(array.shape)} {type_name(array)}")
    return sorted(descriptions.values())[:MAXIMUM_ARRAYS]


def find_places(function: Callable[..., Any], is_wanted: Callable[[Any], bool]) -> Iterator[Place]:
    """Yield each place where a function captures a value that `is_wanted` accepts.

    Values inside such a value are not searched. A value may be in several places.
    """
    yield from _Search(is_wanted).in_function(function, MAXIMUM_DEPTH)


def find_arguments(batches: Sequence[Any], is_wanted: Callable[[Any], bool]) -> Iterator[Place]:
    """Yield each place in the batches that holds a value that `is_wanted` accepts.

    A batch holds a function's arguments by name: one mapping for a single call, or a list of them for several calls.
    """
    search = _Search(is_wanted)
    for batch in batches:
        calls = [batch] if isinstance(batch, Mapping) else batch
        for arguments in calls:
            for name, value in arguments.items():
                place = Place(name, value, functools.partial(_set_item, arguments, name))
                yield from search.in_value(place, MAXIMUM_DEPTH)


def _is_array(value: Any) -> bool:
    # JAX's abstract values, which have a shape and a type but no numbers, have no `__array__`.
    return hasattr(value, "shape") and hasattr(value, "dtype") and hasattr(value, "__array__")


class _Search:
    """Search functions, containers and objects for places of values that `is_wanted` accepts, each of them once."""

    def __init__(self, is_wanted: Callable[[Any], bool]) -> None:
        self._is_wanted = is_wanted
        self._visited: dict[int, Any] = {}
        """Objects that were searched, by `id`; while they are kept, no other object can get the same `id`."""

    def in_function(self, function: Any, depth: int) -> Iterator[Place]:
        """Yield the places of wanted values that a function, a partial, a method or a callable object captures.

        `depth` is how many levels of containers, objects and functions may still be entered.
        """
        if isinstance(function, functools.partial):
            yield from self._in_partial(function, depth)
            return
        plain_function = inspect.unwrap(function)
        if inspect.isfunction(plain_function):
            if self._is_new(plain_function):
                for place in _places_of(plain_function):
                    yield from self.in_value(place, depth)
        elif inspect.ismethod(plain_function) or not inspect.isroutine(plain_function):
            # A method, whose `__self__` is searched, or a callable object. To replace it, set the cells of the wrappers
            # that hold it. A function written in C captures nothing.
            replace = functools.partial(_set_cells, _cells_with(function, plain_function))
            yield from self.in_value(Place("self", plain_function, replace), depth)

    def _in_partial(self, function: "functools.partial[Any]", depth: int) -> Iterator[Place]:
        """Yield the places of wanted values in the arguments of a `functools.partial` and in its function."""
        arguments = list(function.args)

        def replace_function(new_function: Any) -> None:
            """Set the function that the partial calls, and its arguments to the current `arguments`."""
            # The attributes `func` and `args` are read-only, but `__setstate__` sets them.
            function.__setstate__((new_function, tuple(arguments), function.keywords, vars(function)))  # type: ignore[attr-defined]

        def replace_argument(index: int, value: Any) -> None:
            """Make the partial pass another value as a positional argument."""
            arguments[index] = value
            replace_function(function.func)  # the same function, to set the arguments

        for index, argument in enumerate(function.args):
            replace = functools.partial(replace_argument, index)
            yield from self.in_value(Place(f"argument {index}", argument, replace), depth)
        for name, argument in function.keywords.items():
            replace = functools.partial(function.keywords.__setitem__, name)
            yield from self.in_value(Place(f"argument {name}", argument, replace), depth)
        yield from self.in_value(Place("function", function.func, replace_function), depth)

    def in_value(self, place: Place, depth: int) -> Iterator[Place]:
        """Yield the place itself if its value is wanted, or else the places of wanted values inside it.

        `depth` is how many levels of containers, objects and functions may still be entered.
        """
        value = place.value
        if inspect.ismodule(value) or inspect.isclass(value):
            return  # not searched: a function uses little of what they contain
        if self._is_wanted(value):
            yield place
        elif inspect.ismethod(value):
            # A method does not count as a level; its object, which is searched next, does.
            replace = functools.partial(_replace_self, place)
            yield from self.in_value(Place(f"{place.name}.__self__", value.__self__, replace), depth)
            yield from self.in_function(value.__func__, depth)
        elif depth > 0 and _is_function(value):
            yield from self.in_function(value, depth - 1)
        elif depth > 0 and self._is_new(value):
            for item in _items(place):
                yield from self.in_value(item, depth - 1)
            if callable(value) and inspect.isfunction(type(value).__call__):  # its class defines `__call__` in Python
                yield from self.in_function(type(value).__call__, depth - 1)

    def _is_new(self, value: Any) -> bool:
        """Return True if the value was not searched before, and record that it is searched now."""
        is_new = id(value) not in self._visited
        self._visited[id(value)] = value
        return is_new


def _is_function(value: Any) -> bool:
    """Return True for functions, methods, partials, and objects that wrap one of them (`__wrapped__`)."""
    return inspect.isroutine(value) or isinstance(value, functools.partial) or inspect.unwrap(value) is not value


def _replace_self(place: Place, owner: Any) -> None:
    """Store in `place`, which has a bound method, the same method bound to `owner`."""
    place.replace(MethodType(place.value.__func__, owner))


def _cells_with(wrapper: Any, value: Any) -> list[Any]:
    """Return the closure cells that hold `value`: those of a decorator's wrapper, and of functions in its closure."""
    cells = [cell for cell in getattr(wrapper, "__closure__", None) or () if _has_value(cell)]
    cells_with_value = [cell for cell in cells if cell.cell_contents is value]
    for cell in cells:
        if inspect.isfunction(cell.cell_contents):
            cells_with_value += _cells_with(cell.cell_contents, value)
    return cells_with_value


def _set_cells(cells: Sequence[Any], value: Any) -> None:
    """Store a value in each of these closure cells."""
    for cell in cells:
        cell.cell_contents = value


def _ignore_replacement(_value: Any) -> None:
    """Do nothing: serve as `Place.replace` where the value cannot be replaced."""


def _places_of(function: Any) -> Iterator[Place]:
    """Yield the place of each value that a function captures: in its closure, its globals or its defaults."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        if _has_value(cell):
            yield Place(name, cell.cell_contents, functools.partial(setattr, cell, "cell_contents"))
    # The globals of a library's function are not the author's.
    module_globals = {} if _is_library_function(function) else function.__globals__
    for name in sorted(_global_names(function.__code__) & module_globals.keys()):
        yield Place(name, module_globals[name], functools.partial(module_globals.__setitem__, name))
    defaults = list(function.__defaults__ or ())

    def replace_default(index: int, value: Any) -> None:
        """Change one default; the tuple `__defaults__` can only be replaced as a whole."""
        defaults[index] = value
        function.__defaults__ = tuple(defaults)

    for index, default in enumerate(function.__defaults__ or ()):
        yield Place(f"default {index}", default, functools.partial(replace_default, index))
    for name, default in (function.__kwdefaults__ or {}).items():
        yield Place(f"default {name}", default, functools.partial(function.__kwdefaults__.__setitem__, name))


def _is_library_function(function: Any) -> bool:
    """Return True for a function of a framework, of NumPy or of the standard library."""
    package = str(function.__module__).partition(".")[0]
    return package in frameworks.packages() or package == "numpy" or package in sys.stdlib_module_names


def _global_names(code: CodeType) -> set[str]:
    """Return the names of globals and attributes that a function's code uses, with the functions defined inside it."""
    names = set(code.co_names)  # lists globals and attributes alike
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _global_names(constant)
    return names


def _has_value(cell: Any) -> bool:
    """Return True if a closure's cell has a value; it is empty until its variable is assigned."""
    try:
        cell.cell_contents  # noqa: B018 - an empty cell raises
    except ValueError:
        return False
    return True


def _items(place: Place) -> Iterator[Place]:
    """Yield the place of each item or attribute of the value in a place, if it is a container or an object.

    For `layers`, these places are named `layers['key']`, `layers[0]` or `layers.weight`.
    """
    value = place.value
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield Place(f"{place.name}[{key!r}]", item, functools.partial(_set_item, value, key))
    elif isinstance(value, list) and len(value) <= MAXIMUM_ITEMS:
        for index, item in enumerate(value):
            yield Place(f"{place.name}[{index}]", item, functools.partial(_set_item, value, index))
    elif isinstance(value, tuple) and len(value) <= MAXIMUM_ITEMS:
        yield from _items_of_tuple(place)
    elif callable(getattr(value, "named_parameters", None)):  # a torch.nn.Module
        for key, parameter in value.named_parameters():
            # Parameters are only listed. To convert them, `TorchCaptured` takes the module as a whole.
            yield Place(f"{place.name}.{key}", parameter, _ignore_replacement)
    elif hasattr(value, "__dict__"):
        for key, item in list(vars(value).items()):
            replace = functools.partial(object.__setattr__, value, key)  # also sets fields of a frozen dataclass
            yield Place(f"{place.name}.{key}", item, replace)


def _items_of_tuple(place: Place) -> Iterator[Place]:
    """Yield the place of each item of a tuple. Replacing an item stores a new tuple where the old one was."""
    items = list(place.value)
    tuple_type = type(place.value)

    def replace_item(index: int, item: Any) -> None:
        """Replace the tuple by a tuple that has another item, because a tuple cannot change."""
        items[index] = item
        is_named_tuple = hasattr(tuple_type, "_fields")
        place.replace(tuple_type(*items) if is_named_tuple else tuple_type(items))

    for index, item in enumerate(place.value):
        yield Place(f"{place.name}[{index}]", item, functools.partial(replace_item, index))


def _set_item(container: Any, key: Any, item: Any) -> None:
    """Store an item in a container; do nothing if the container is read-only."""
    with contextlib.suppress(TypeError):
        container[key] = item
