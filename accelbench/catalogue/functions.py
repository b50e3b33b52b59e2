"""Make a workload of a module: of its class, or of pure functions `y = f(x)`, one for each framework.

Functions feed nothing back from one call to the next, and need not: every framework runs what one thread dispatches in
order, so calls never overlap (docs/adr/0028-a-pure-function-is-a-workload.md).
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import Field, create_model
from pydantic.errors import PydanticUserError

from accelbench import frameworks
from accelbench.catalogue import workload_checks
from accelbench.catalogue.pickled import unpickle
from accelbench.catalogue.workload_checks import InvalidWorkloadError, location, type_of
from accelbench.workload import Array, Arrays, NamedArrays, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator

ARRAYS = 'def arrays(rng): return {"x": rng.standard_normal((1000, 1000))}'
"""Advice if a script has functions but no arrays()."""
LOOPING = frozenset({"scan"})
"""Modes for a loop of steps, which a function is not."""
NAMED = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})
RESULT = "y"
"""Name of the single array that a function returns."""


class FunctionWorkload(Workload):
    """Define what workloads made of functions share: variants in each framework's own modes."""

    hand_written = False

    @classmethod
    def default_uses(cls) -> tuple[str, ...]:
        """Return each framework's first mode."""
        return tuple(f"{framework}/{modes[0]}" for framework, modes in cls.modes.items())


def workload_class(module: ModuleType, name: str) -> type[Workload]:
    """Return the module's workload class, not yet checked; `name` is the module's in error messages.

    Raises:
        InvalidWorkloadError: The module has neither functions nor exactly one class.
    """
    kinds = [
        member
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Workload) and member.__module__ == module.__name__
    ]
    if not kinds and (function_workload := _find_functions(module)):
        return function_workload
    if len(kinds) != 1:
        classes = ", ".join(kind.__name__ for kind in kinds) or "none"
        raise InvalidWorkloadError(
            f"{name}: a script has functions, such as jax(x) and pytorch(x), and arrays(rng), which makes their "
            f"inputs; or one class that inherits accelbench.workload.Workload. Classes found: {classes}"
        )
    return kinds[0]


def _find_functions(module: ModuleType) -> type[FunctionWorkload] | None:
    """Make a workload of the module's functions that are named like frameworks; None if there are none.

    Raises:
        InvalidWorkloadError: `arrays` is missing, or a name looks misspelt.
    """
    known = {*frameworks.names(), "arrays", "reference"}
    callables = {
        name: member
        for name, member in vars(module).items()
        if inspect.isfunction(member) or (name in known and callable(member) and not inspect.isclass(member))
    }
    functions = {name: callables[name] for name in frameworks.names() if name in callables}
    if not functions:
        return None
    others = callables.keys() - functions.keys() - {"arrays", "reference"}
    for name in (*frameworks.names(), "arrays", "reference"):
        if name not in callables and (misspelling := workload_checks.misspelt(name, others)):
            raise InvalidWorkloadError(f"{location(callables[misspelling])}: did you mean {name}()?")
    if "arrays" not in callables:
        raise InvalidWorkloadError(
            f"{location(next(iter(functions.values())))}: no arrays() makes its inputs; write {ARRAYS}"
        )
    return _make_workload(module, functions, unpickle(callables["arrays"]), callables.get("reference"))


def _make_workload(
    module: ModuleType,
    functions: Mapping[str, Callable[..., Any]],
    arrays: Callable[..., Any],
    reference: Callable[..., Any] | None,
) -> type[FunctionWorkload]:
    """Make a workload class of `functions` by framework, as if the module defined it.

    `arrays(rng, ...)` returns a dictionary of NumPy arrays, named like the functions' parameters; its further
    parameters are the workload's. `reference` computes the right result in NumPy. Raises InvalidWorkloadError.
    """
    takers = [*functions.values(), *([reference] if reference else [])]
    _require_same_arrays(takers)
    parameters = _make_parameters(arrays)
    for function in takers:
        if both := sorted(inspect.signature(function).parameters.keys() & parameters.model_fields.keys()):
            raise InvalidWorkloadError(
                f"{location(function)} takes {', '.join(both)}, which arrays() takes too: functions take arrays only; "
                "return it as an array, or rename one of the two"
            )
    members: dict[str, Any] = {
        "__module__": module.__name__,
        "__doc__": module.__doc__ or f"{', '.join(functions)} by functions of the same arrays.",
        "modes": {framework: _modes(framework) for framework in functions},
        "Parameters": parameters,
        "arrays": _make_arrays(arrays, takers),
        **{framework: _make_program(function) for framework, function in functions.items()},
    }
    if reference:
        members["reference"] = _make_reference(reference)
    return type("Functions", (FunctionWorkload,), members)


def _modes(framework: str) -> tuple[str, ...]:
    """Return the framework's modes in which a function can run: all but those that loop over steps."""
    return tuple(mode for mode in frameworks.find(framework).modes if mode not in LOOPING)


def _require_same_arrays(functions: Sequence[Callable[..., Any]]) -> None:
    """Raise InvalidWorkloadError unless all functions take the same arrays, by name."""
    first, *others = functions
    expected = _required_parameters(first)
    for other in others:
        if sorted(names := _required_parameters(other)) != sorted(expected):
            raise InvalidWorkloadError(
                f"{location(other)} takes ({', '.join(names)}), and {location(first)} takes ({', '.join(expected)}); "
                "both are given the same arrays by name"
            )


def _required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the function's parameters without default; raises InvalidWorkloadError if one has no name."""
    parameters = inspect.signature(function).parameters.values()
    if unnamed := [str(parameter) for parameter in parameters if parameter.kind not in NAMED]:
        raise InvalidWorkloadError(
            f"{location(function)} takes {', '.join(unnamed)}; arrays are given by name, "
            f"as in def {function.__name__}(x)"
        )
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def _make_parameters(arrays: Callable[..., Any]) -> type[WorkloadParameters]:
    """Make a model of the arguments of `arrays` after its first, with their defaults.

    Raises:
        InvalidWorkloadError: The first argument is missing or has a default, or another one has none.
    """
    try:
        arguments = [*inspect.signature(arrays, eval_str=True).parameters.values()]
    except NameError:  # an annotation is imported for type checkers only
        arguments = [*inspect.signature(arrays).parameters.values()]
    if not arguments or arguments[0].default is not inspect.Parameter.empty:
        actual = f"({arguments[0]}) first" if arguments else "no argument"
        raise InvalidWorkloadError(
            f"{location(arrays)} takes {actual}; its first argument has to be the random generator: {ARRAYS}"
        )
    fields: dict[str, Any] = {}
    for argument in arguments[1:]:
        if argument.default is argument.empty:
            raise InvalidWorkloadError(f"{location(arrays)}: every parameter needs a default; {argument.name} has none")
        annotated = argument.annotation is not argument.empty and not isinstance(argument.annotation, str)
        kind = argument.annotation if annotated else type(argument.default)
        fields[argument.name] = (kind, Field(default=argument.default))
    try:
        return create_model("Parameters", __base__=WorkloadParameters, **fields)
    except (PydanticUserError, NameError) as error:
        raise InvalidWorkloadError(f"{location(arrays)}: {error}") from error


def _make_arrays(draw: Callable[..., Any], functions: Sequence[Callable[..., Any]]) -> Callable[..., Arrays]:
    """Make the workload's method `arrays`, which checks what `draw` imports and returns.

    The method raises InvalidWorkloadError if `draw` imports a framework, or if `functions` cannot take its arrays.
    """

    def arrays(_self: Workload, parameters: Any, rng: "Generator") -> Arrays:
        imported_before = frameworks.packages() & sys.modules.keys()
        drawn = unpickle(draw)(rng, **parameters.model_dump())
        if imported := sorted((frameworks.packages() & sys.modules.keys()) - imported_before):
            raise InvalidWorkloadError(
                f"{location(draw)} imports {', '.join(imported)}. The launches of the other framework run this code "
                "too and would load it; use NumPy"
            )
        if not isinstance(drawn, Mapping):
            raise InvalidWorkloadError(
                f"{location(draw)} returned a {type(drawn).__name__}; it has to return a dictionary of arrays: {ARRAYS}"
            )
        for function in functions:
            _require_callable_with(function, drawn)
        return Arrays(state={}, batches=({name: _to_numbers(draw, name, value) for name, value in drawn.items()},))

    return arrays


def _to_numbers(draw: Callable[..., Any], name: str, value: object) -> Array:
    """Convert a value to an array of numbers; raises InvalidWorkloadError."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise InvalidWorkloadError(f'{location(draw)} returned "{name}", which is not an array: {error}') from error
    if array.dtype.kind not in "biufc":
        raise InvalidWorkloadError(
            f'{location(draw)} returned "{name}" as {type_of(value)}; it has to be an array of numbers'
        )
    return array


def _make_program(function: Callable[..., Any]) -> Callable[..., Program]:
    """Make a workload's method that builds a framework's program, whose step calls `function` on the batch."""

    def build(_self: Workload, _parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        plain = unpickle(function)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            return state, plain(**batch)

        # Errors, and the search for captured arrays, refer to the function; frameworks see the signature of step.
        vars(step).update(__signature__=inspect.signature(step), __wrapped__=plain)
        batches = [tools.put(dict(batch)) for batch in arrays.batches]
        initial_versions = [_freeze(batch) for batch in batches]

        def export(_state: Any, out: Any) -> Mapping[str, Any]:
            for batch, versions in zip(batches, initial_versions, strict=True):
                _require_unchanged(plain, batch, versions)
            return _name_results(plain, out)

        return Program(state={}, step=step, batches=batches, export=export)

    return build


def _freeze(batch: Mapping[str, Any]) -> dict[str, int | None]:
    """Make NumPy's arrays read-only; return each PyTorch tensor's count of changes in place. JAX's cannot change."""
    for array in batch.values():
        if hasattr(array, "setflags"):
            array.setflags(write=False)
    return {name: getattr(array, "_version", None) for name, array in batch.items()}


def _require_unchanged(
    function: Callable[..., Any], batch: Mapping[str, Any], versions: Mapping[str, int | None]
) -> None:
    """Raise InvalidWorkloadError if a call changed its arrays, on which the next call would work."""
    changed = [name for name, array in batch.items() if getattr(array, "_version", None) != versions[name]]
    if changed:
        raise InvalidWorkloadError(
            f"{location(function)} changes {', '.join(changed)} in place, and its next call would start from that; "
            "copy it first"
        )


def _require_callable_with(function: Callable[..., Any], batch: NamedArrays) -> None:
    """Raise InvalidWorkloadError if the function cannot be called with these arrays, by name."""
    try:
        inspect.signature(function).bind(**batch)
    except TypeError as error:
        names = ", ".join(batch) or "nothing"
        raise InvalidWorkloadError(f"{location(function)} is given the arrays {names}: {error}") from None


def _name_results(function: Callable[..., Any], out: Any) -> Mapping[str, Any]:
    """Name what a function returned: a dictionary has names, an array is `y`, those of a tuple are `y0`, `y1`.

    Raises:
        InvalidWorkloadError: A name is no string, or a result is no array.
    """
    if isinstance(out, Mapping):
        named = dict(out)
    elif isinstance(out, tuple | list):
        named = {f"{RESULT}{index}": array for index, array in enumerate(out)}
    else:
        named = {RESULT: out}
    for name, array in named.items():
        if not isinstance(name, str):
            raise InvalidWorkloadError(f"{location(function)} names a result {name!r}; a name is a string")
        if not hasattr(array, "dtype"):
            which = "" if array is out else f'"{name}" as '
            raise InvalidWorkloadError(
                f"{location(function)} returned {which}{type_of(array)}; it has to return an array, or several in a "
                "tuple or a dictionary"
            )
    return named


def _make_reference(function: Callable[..., Any]) -> Callable[..., NamedArrays]:
    """Make a workload's method `reference` of a function in NumPy."""

    def reference(_self: Workload, _parameters: Any, arrays: Arrays, _units: int) -> NamedArrays:
        return _name_results(function, function(**arrays.batches[0]))

    return reference
