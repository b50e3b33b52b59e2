"""Pass arrays and parameters to a function of a script.

A function of the user gets each array as the parameter of the same name, and by position where it can, because
`jax.grad(f)` and `jax.vmap(f, in_axes)` count positions. A callable whose parameters are not named like the arrays gets
the arrays in their order: a function with `*args`, a builtin such as `torch.sin`, a module, or a framework's function.
"""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from accelbench import frameworks
from accelbench.catalogue.pickled import Pickled, unpickle
from accelbench.catalogue.workload_checks import InvalidWorkloadError, location

POSITIONAL_KINDS = frozenset({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD})
KEYWORD_KINDS = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})
LIBRARIES = frozenset({"numpy", "scipy"})
"""Packages other than frameworks whose functions do not name their parameters like a user's arrays."""


@dataclass(frozen=True)
class Arguments:
    """Name the values that a function gets by position and by keyword: arrays and constants."""

    positional: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    constants: frozenset[str] = frozenset()
    """Which of these names are not arrays: parameters of `arrays()`, and Python values that a setup made."""

    @property
    def arrays(self) -> tuple[str, ...]:
        """Return the names of the arrays."""
        return tuple(name for name in (*self.positional, *self.keywords) if name not in self.constants)

    def caller(self, function: Callable[..., Any], values: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], Any]:
        """Return a function that takes the arrays by name and calls `function` with them and with the constants.

        `values` has at least the constants, by name. The returned function is part of the timed call, so it does as
        little as possible.
        """
        keyword_constants = {name: values[name] for name in self.keywords if name in self.constants}
        if self.positional:
            keyword_arrays = [name for name in self.keywords if name not in self.constants]

            def call_by_position(arrays: Mapping[str, Any]) -> Any:
                positional = [values[name] if name in self.constants else arrays[name] for name in self.positional]
                return function(*positional, **{name: arrays[name] for name in keyword_arrays}, **keyword_constants)

            return call_by_position
        # Nothing is passed by position, so all arrays are passed by keyword.
        if keyword_constants:
            return lambda arrays: function(**arrays, **keyword_constants)
        return lambda arrays: function(**arrays)


def choose_arguments(
    function: Callable[..., Any], arrays: Collection[str], parameters: Collection[str] = ()
) -> Arguments:
    """Return which values to pass to the function by position and which by keyword.

    All of the arrays are passed, and of the parameters only those that the function has in its signature.

    Raises:
        InvalidWorkloadError: The function does not accept these arrays.
    """
    signature = signature_of(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    keyword_names = {name for name, parameter in signature.parameters.items() if parameter.kind in KEYWORD_KINDS}
    chosen_parameters = [name for name in parameters if name in signature.parameters and name not in arrays]
    has_keyword_for_each_array = keyword_names.issuperset(arrays)
    accepts_unnamed_values = not kinds.isdisjoint({inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL})
    if has_keyword_for_each_array:
        by_position = False
    elif names_its_arrays(function):
        # `**others` gets the remaining arrays by name; otherwise `*args` or `x, /` gets them by position.
        by_position = accepts_unnamed_values and inspect.Parameter.VAR_KEYWORD not in kinds
    else:
        by_position = True  # the parameters of a library's function have names of their own
    if by_position:
        arguments = _by_position(signature, list(arrays), chosen_parameters)
    else:
        arguments = _by_name(signature, [*arrays, *chosen_parameters], chosen_parameters)
    try:
        signature.bind(*arguments.positional, **dict.fromkeys(arguments.keywords))
    except TypeError as error:
        names = ", ".join(arrays) or "nothing"
        raise InvalidWorkloadError(f"{location(function)} is given the arrays {names}: {error}") from None
    return arguments


def _by_name(signature: inspect.Signature, names: list[str], constants: Collection[str]) -> Arguments:
    """Return arguments that pass the value of each of `names` to the function's parameter of the same name.

    They are passed by position up to the first parameter that has no value or needs a keyword, the others by keyword.
    `constants` are those of `names` that are not arrays.
    """
    positional: list[str] = []
    for name, parameter in signature.parameters.items():
        if name not in names or parameter.kind not in POSITIONAL_KINDS:
            break
        positional.append(name)
    keywords = [name for name in names if name not in positional]
    return Arguments(tuple(positional), tuple(keywords), frozenset(constants))


def _by_position(signature: inspect.Signature, arrays: list[str], parameters: list[str]) -> Arguments:
    """Return arguments that fill the parameters in the function's signature from left to right.

    A parameter with the name of an array, or of one of `parameters`, gets that value. Any other parameter gets the next
    array whose name is not in the signature, and `*args` gets all such arrays that remain.
    """
    unnamed_arrays = [name for name in arrays if name not in signature.parameters]
    positional: list[str] = []
    for name, parameter in signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            positional += unnamed_arrays
            unnamed_arrays = []
        elif parameter.kind in POSITIONAL_KINDS:
            if name in arrays or name in parameters:
                positional.append(name)
            elif unnamed_arrays:
                positional.append(unnamed_arrays.pop(0))
            else:  # no array is left, so this parameter and those after it keep their defaults
                break
    keywords = [name for name in (*arrays, *parameters) if name not in positional]
    return Arguments(tuple(positional), tuple(keywords), frozenset(parameters))


def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    """Return the function's signature, or that of `f(*arrays)` for a builtin whose signature is unknown."""
    try:
        return inspect.signature(function)
    except ValueError:
        return inspect.Signature([inspect.Parameter("arrays", inspect.Parameter.VAR_POSITIONAL)])


def names_its_arrays(function: Callable[..., Any]) -> bool:
    """Return True if a user wrote the function, so that its parameters have the names of the arrays.

    The parameters of builtins and other callable objects, and of functions of a framework or of NumPy, have other
    names.
    """
    if isinstance(function, Pickled):
        return function.names_its_arrays
    while isinstance(function, functools.partial):
        function = function.func
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    is_written_in_python = inspect.isfunction(function) or inspect.ismethod(function)
    return is_written_in_python and package not in frameworks.packages() | LIBRARIES


def required_names(function: Callable[..., Any], parameters: Collection[str]) -> list[str] | None:
    """Return the names of the arrays that the function needs; None if it can take arrays of any names.

    `parameters` are the names of the parameters of `arrays()`, which are not arrays.
    """
    signature = signature_of(function)
    if not names_its_arrays(function):  # it gets the arrays in their order
        return None
    # An array of any name can be passed to `x, /`, `*args` or `**others`.
    if any(parameter.kind not in KEYWORD_KINDS for parameter in signature.parameters.values()):
        return None
    return [
        name
        for name, parameter in signature.parameters.items()
        if parameter.default is parameter.empty and name not in parameters
    ]


def call_with(function: Callable[..., Any], arrays: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """Call the function with the arrays, and with the `parameters` that are in its signature."""
    arguments = choose_arguments(function, arrays, parameters)
    return arguments.caller(unpickle(function), parameters)(arrays)
