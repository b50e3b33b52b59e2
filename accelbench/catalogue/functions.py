"""Make a workload of a module: of its class, or of pure functions `y = f(x)`, one for each framework.

No function takes the result of its previous call. Calls never overlap all the same, because every framework runs in
order what one thread dispatches (docs/adr/0028-a-pure-function-is-a-workload.md).
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
"""Modes that run several steps in a loop. A function has a single step."""
KEYWORD_KINDS = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})
"""Kinds of parameters that can be passed by name."""
RESULT = "y"
"""Name of the single array that a function returns."""


class FunctionWorkload(Workload):
    """Define what all workloads made of functions share."""

    hand_written = False

    @classmethod
    def default_uses(cls) -> tuple[str, ...]:
        """Return one variant for each framework: the framework's first mode."""
        return tuple(f"{framework}/{modes[0]}" for framework, modes in cls.modes.items())


def workload_class(module: ModuleType, name: str) -> type[Workload]:
    """Return the module's workload class, or make one of its functions.

    The class is not yet checked; `name` is for error messages.

    Raises:
        InvalidWorkloadError: The module has neither functions nor exactly one class.
    """
    classes = [
        member
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Workload) and member.__module__ == module.__name__
    ]
    if not classes and (function_workload := _workload_of_functions(module)):
        return function_workload
    if len(classes) != 1:
        class_names = ", ".join(kind.__name__ for kind in classes) or "none"
        raise InvalidWorkloadError(
            f"{name}: a script has functions, such as jax(x) and pytorch(x), and arrays(rng), which makes their "
            f"inputs; or one class that inherits accelbench.workload.Workload. Classes found: {class_names}"
        )
    return classes[0]


def _workload_of_functions(module: ModuleType) -> type[FunctionWorkload] | None:
    """Make a workload of the functions named like frameworks, if there are any."""
    known_names = (*frameworks.names(), "arrays", "reference")
    callables = {
        name: member for name, member in vars(module).items() if _is_workload_function(name, member, known_names)
    }
    functions = {name: callables[name] for name in frameworks.names() if name in callables}
    if not functions:
        return None
    unknown_names = callables.keys() - set(known_names)
    for name in known_names:
        if name not in callables and (misspelling := workload_checks.find_misspelling(name, unknown_names)):
            raise InvalidWorkloadError(f"{location(callables[misspelling])}: did you mean {name}()?")
    if "arrays" not in callables:
        first_function = next(iter(functions.values()))
        raise InvalidWorkloadError(f"{location(first_function)}: no arrays() makes its inputs; write {ARRAYS}")
    return _make_workload(module, functions, unpickle(callables["arrays"]), callables.get("reference"))


def _is_workload_function(name: str, member: object, known_names: Sequence[str]) -> bool:
    """Return True for a function, or for a callable with one of `known_names`."""
    if inspect.isfunction(member):
        return True
    return name in known_names and callable(member) and not inspect.isclass(member)  # such as `jax = partial(f, 2)`


def _make_workload(
    module: ModuleType,
    functions: Mapping[str, Callable[..., Any]],
    arrays: Callable[..., Any],
    reference: Callable[..., Any] | None,
) -> type[FunctionWorkload]:
    """Make a workload class of a module's functions.

    `functions` has one function for each framework, by name.
    """
    all_functions = [*functions.values()]
    if reference:
        all_functions.append(reference)
    _require_same_arrays(all_functions)
    parameters = _make_parameters(arrays)
    for function in all_functions:
        shared_names = sorted(inspect.signature(function).parameters.keys() & parameters.model_fields.keys())
        if shared_names:
            raise InvalidWorkloadError(
                f"{location(function)} takes {', '.join(shared_names)}, which arrays() takes too: functions take "
                "arrays only; return it as an array, or rename one of the two"
            )
    members: dict[str, Any] = {
        "__module__": module.__name__,
        "__doc__": module.__doc__ or f"{', '.join(functions)} by functions of the same arrays.",
        "modes": {framework: _modes(framework) for framework in functions},
        "Parameters": parameters,
        "arrays": _make_arrays(arrays, all_functions),
    }
    for framework, function in functions.items():
        members[framework] = _make_program(function)
    if reference:
        members["reference"] = _make_reference(reference)
    return type("Functions", (FunctionWorkload,), members)


def _modes(framework: str) -> tuple[str, ...]:
    """Return the framework's modes without a loop over steps."""
    return tuple(mode for mode in frameworks.find(framework).modes if mode not in LOOPING)


def _require_same_arrays(functions: Sequence[Callable[..., Any]]) -> None:
    """Raise InvalidWorkloadError if the functions require arrays of different names."""
    first, *others = functions
    expected = _required_parameters(first)
    for other in others:
        names = _required_parameters(other)
        if sorted(names) != sorted(expected):
            raise InvalidWorkloadError(
                f"{location(other)} takes ({', '.join(names)}), and {location(first)} takes ({', '.join(expected)}); "
                "both are given the same arrays by name"
            )


def _required_parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of the function's parameters that have no default."""
    parameters = inspect.signature(function).parameters.values()
    unsupported = [str(parameter) for parameter in parameters if parameter.kind not in KEYWORD_KINDS]
    if unsupported:
        raise InvalidWorkloadError(
            f"{location(function)} takes {', '.join(unsupported)}; arrays are given by name, "
            f"as in def {function.__name__}(x)"
        )
    return [parameter.name for parameter in parameters if parameter.default is parameter.empty]


def _make_parameters(arrays: Callable[..., Any]) -> type[WorkloadParameters]:
    """Make the model of the workload's parameters from the arguments of `arrays`."""
    try:
        arguments = [*inspect.signature(arrays, eval_str=True).parameters.values()]
    except NameError:  # an annotation is imported for type checkers only
        arguments = [*inspect.signature(arrays).parameters.values()]
    if not arguments or arguments[0].default is not inspect.Parameter.empty:
        first_argument = f"({arguments[0]}) first" if arguments else "no argument"
        raise InvalidWorkloadError(
            f"{location(arrays)} takes {first_argument}; its first argument has to be the random generator: {ARRAYS}"
        )
    fields: dict[str, Any] = {}
    for argument in arguments[1:]:
        if argument.default is argument.empty:
            raise InvalidWorkloadError(f"{location(arrays)}: every parameter needs a default; {argument.name} has none")
        # An annotation that is still a string could not be evaluated; then the default gives the type.
        has_type = argument.annotation is not argument.empty and not isinstance(argument.annotation, str)
        field_type = argument.annotation if has_type else type(argument.default)
        fields[argument.name] = (field_type, Field(default=argument.default))
    try:
        return create_model("Parameters", __base__=WorkloadParameters, **fields)
    except (PydanticUserError, NameError) as error:
        raise InvalidWorkloadError(f"{location(arrays)}: {error}") from error


def _make_arrays(draw: Callable[..., Any], functions: Sequence[Callable[..., Any]]) -> Callable[..., Arrays]:
    """Make the workload's method `arrays`, which calls and checks `draw`."""

    def arrays(_self: Workload, parameters: Any, rng: "Generator") -> Arrays:
        """Return the arrays of `draw` as a single batch without state."""
        imported_before = frameworks.packages() & sys.modules.keys()  # the launch's own framework may be loaded already
        named_arrays = unpickle(draw)(rng, **parameters.model_dump())
        imported = sorted((frameworks.packages() & sys.modules.keys()) - imported_before)
        if imported:
            raise InvalidWorkloadError(
                f"{location(draw)} imports {', '.join(imported)}. The launches of the other framework run this code "
                "too and would load it; use NumPy"
            )
        if not isinstance(named_arrays, Mapping):
            kind = type(named_arrays).__name__
            raise InvalidWorkloadError(
                f"{location(draw)} returned a {kind}; it has to return a dictionary of arrays: {ARRAYS}"
            )
        for function in functions:
            _require_callable_with(function, named_arrays)
        batch = {name: _to_numeric_array(draw, name, value) for name, value in named_arrays.items()}
        return Arrays(state={}, batches=(batch,))

    return arrays


def _to_numeric_array(draw: Callable[..., Any], name: str, value: object) -> Array:
    """Convert a value that `draw` returned to an array of numbers."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise InvalidWorkloadError(f'{location(draw)} returned "{name}", which is not an array: {error}') from error
    is_numeric = array.dtype.kind in "biufc"  # booleans, integers, unsigned integers, floats, complex numbers
    if not is_numeric:
        raise InvalidWorkloadError(
            f'{location(draw)} returned "{name}" as {type_of(value)}; it has to be an array of numbers'
        )
    return array


def _make_program(function: Callable[..., Any]) -> Callable[..., Program]:
    """Make a workload's method that builds a program of `function`."""

    def build(_self: Workload, _parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Build a program whose step passes a batch's arrays to the function."""
        unpickled_function = unpickle(function)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            return state, unpickled_function(**batch)

        # With `__wrapped__`, errors name the user's function, and its captured arrays are found.
        # `__signature__` keeps inspect from using the signature of `__wrapped__`.
        vars(step).update(__signature__=inspect.signature(step), __wrapped__=unpickled_function)
        batches = [tools.put(dict(batch)) for batch in arrays.batches]
        initial_versions = [_freeze_and_read_versions(batch) for batch in batches]

        def export(_state: Any, out: Any) -> Mapping[str, Any]:
            """Return the results by name; raises InvalidWorkloadError if a batch was changed."""
            for batch, versions in zip(batches, initial_versions, strict=True):
                _require_unchanged(unpickled_function, batch, versions)
            return _name_results(unpickled_function, out)

        return Program(state={}, step=step, batches=batches, export=export)

    return build


def _freeze_and_read_versions(batch: Mapping[str, Any]) -> dict[str, int | None]:
    """Make NumPy arrays read-only, and return the version of each tensor.

    PyTorch increases a tensor's version at each change in place.
    """
    for array in batch.values():
        if hasattr(array, "setflags"):
            array.setflags(write=False)
    return {name: getattr(array, "_version", None) for name, array in batch.items()}


def _require_unchanged(
    function: Callable[..., Any], batch: Mapping[str, Any], initial_versions: Mapping[str, int | None]
) -> None:
    """Raise InvalidWorkloadError if the function changed a tensor in place."""
    # JAX's arrays have no `_version` and cannot change.
    changed = [name for name, array in batch.items() if getattr(array, "_version", None) != initial_versions[name]]
    if changed:
        raise InvalidWorkloadError(
            f"{location(function)} changes {', '.join(changed)} in place, and its next call would start from that; "
            "copy it first"
        )


def _require_callable_with(function: Callable[..., Any], batch: NamedArrays) -> None:
    """Raise InvalidWorkloadError if the function does not accept the arrays by name."""
    try:
        inspect.signature(function).bind(**batch)
    except TypeError as error:
        names = ", ".join(batch) or "nothing"
        raise InvalidWorkloadError(f"{location(function)} is given the arrays {names}: {error}") from None


def _name_results(function: Callable[..., Any], out: Any) -> Mapping[str, Any]:
    """Return a function's results by name.

    A single array is named `y`; the arrays of a tuple are named `y0`, `y1`.
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
            prefix = "" if array is out else f'"{name}" as '
            raise InvalidWorkloadError(
                f"{location(function)} returned {prefix}{type_of(array)}; it has to return an array, or several in a "
                "tuple or a dictionary"
            )
    return named


def _make_reference(function: Callable[..., Any]) -> Callable[..., NamedArrays]:
    """Make a workload's method `reference`, which calls a NumPy function.

    Every call gives the same result, so the number of units does not matter.
    """

    def reference(_self: Workload, _parameters: Any, arrays: Arrays, _units: int) -> NamedArrays:
        return _name_results(function, function(**arrays.batches[0]))

    return reference
