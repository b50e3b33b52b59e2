"""Pure functions as a workload: `y = f(x)`, written once for each framework, and the arrays that they are given.

Nothing is fed back from one call to the next, and nothing need be: every framework runs what one thread dispatches in
order, so that calls never overlap (`docs/adr/0028-a-pure-function-is-a-workload.md`).
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
from accelbench.catalogue.pickled import unpickled
from accelbench.catalogue.workload_checks import InvalidWorkloadError, given, place
from accelbench.workload import Array, Arrays, NamedArrays, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator

ARRAYS = 'def arrays(rng): return {"x": rng.standard_normal((1000, 1000))}'
"""What to write where nobody says what the functions are given."""
LOOPING = frozenset({"scan"})
"""Modes for a loop of steps, which a function is not."""
NAMED = frozenset({inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY})
RESULT = "y"
"""What the one array is called that a function returns."""


class FunctionWorkload(Workload):
    """What functions of other names have in common: variants in each framework's own modes, none of them written."""

    written = False

    @classmethod
    def usual(cls) -> tuple[str, ...]:
        """Each framework's first mode: nobody has chosen any."""
        return tuple(f"{framework}/{modes[0]}" for framework, modes in cls.modes.items())


def in_module(module: ModuleType) -> type[FunctionWorkload] | None:
    """The workload of the functions that are called as frameworks are; None: there are none of that name.

    Raises InvalidWorkloadError where `arrays` is missing, or a name looks like one of these.
    """
    ours = {*frameworks.names(), "arrays", "reference"}
    written = {
        name: member
        for name, member in vars(module).items()
        if inspect.isfunction(member) or (name in ours and callable(member) and not inspect.isclass(member))
    }
    functions = {name: written[name] for name in frameworks.names() if name in written}
    if not functions:
        return None
    others = written.keys() - functions.keys() - {"arrays", "reference"}
    for name in (*frameworks.names(), "arrays", "reference"):
        if name not in written and (meant := workload_checks.misspelt(name, others)):
            raise InvalidWorkloadError(f"{place(written[meant])}: did you mean {name}()?")
    if "arrays" not in written:
        raise InvalidWorkloadError(
            f"{place(next(iter(functions.values())))}: no arrays() makes its inputs; write {ARRAYS}"
        )
    return _kind(module, functions, unpickled(written["arrays"]), written.get("reference"))


def _kind(
    module: ModuleType,
    functions: Mapping[str, Callable[..., Any]],
    arrays: Callable[..., Any],
    reference: Callable[..., Any] | None,
) -> type[FunctionWorkload]:
    """The workload of `functions` by framework, as if the module had it as a class; raises InvalidWorkloadError.

    `arrays(rng, ...)` returns a dictionary of NumPy arrays, by the names of the functions' parameters; its own further
    parameters are the workload's. `reference` is what is right, in NumPy.
    """
    written = [*functions.values(), *([reference] if reference else [])]
    _refuse_other_parameters(written)
    parameters = _parameters(arrays)
    for function in written:
        if both := sorted(inspect.signature(function).parameters.keys() & parameters.model_fields.keys()):
            raise InvalidWorkloadError(
                f"{place(function)} takes {', '.join(both)}, which arrays() takes too: functions are given arrays "
                "only; return it as an array, or rename one of the two"
            )
    members: dict[str, Any] = {
        "__module__": module.__name__,
        "__doc__": module.__doc__ or f"{', '.join(functions)} by functions of the same arrays.",
        "modes": {framework: _modes(framework) for framework in functions},
        "Parameters": parameters,
        "arrays": _arrays(arrays, written),
        **{framework: _program(function) for framework, function in functions.items()},
    }
    if reference:
        members["reference"] = _reference(reference)
    return type("Functions", (FunctionWorkload,), members)


def _modes(framework: str) -> tuple[str, ...]:
    return tuple(mode for mode in frameworks.find(framework).modes if mode not in LOOPING)


def _refuse_other_parameters(functions: Sequence[Callable[..., Any]]) -> None:
    """All are given the same arrays, by name."""
    first, *others = functions
    wanted = _needed(first)
    for other in others:
        if sorted(names := _needed(other)) != sorted(wanted):
            raise InvalidWorkloadError(
                f"{place(other)} takes ({', '.join(names)}), and {place(first)} takes ({', '.join(wanted)}); both are "
                f"given the same arrays by name"
            )


def _needed(function: Callable[..., Any]) -> list[str]:
    """Its parameters without default, each of which can be given by name; raises InvalidWorkloadError."""
    parameters = inspect.signature(function).parameters.values()
    if unnamed := [str(each) for each in parameters if each.kind not in NAMED]:
        raise InvalidWorkloadError(
            f"{place(function)} takes {', '.join(unnamed)}; arrays are given by name, as in def {function.__name__}(x)"
        )
    return [each.name for each in parameters if each.default is each.empty]


def _parameters(arrays: Callable[..., Any]) -> type[WorkloadParameters]:
    """The arguments of `arrays` after its first, each with its default."""
    try:
        arguments = [*inspect.signature(arrays, eval_str=True).parameters.values()]
    except NameError:  # of an annotation that only a type checker reads
        arguments = [*inspect.signature(arrays).parameters.values()]
    if not arguments or arguments[0].default is not inspect.Parameter.empty:
        taken = f"({arguments[0]}) first" if arguments else "no argument"
        raise InvalidWorkloadError(
            f"{place(arrays)} takes {taken}; its first argument has to be the random generator: {ARRAYS}"
        )
    fields: dict[str, Any] = {}
    for each in arguments[1:]:
        if each.default is each.empty:
            raise InvalidWorkloadError(f"{place(arrays)}: every parameter needs a default; {each.name} has none")
        said = each.annotation is not each.empty and not isinstance(each.annotation, str)
        kind = each.annotation if said else type(each.default)
        fields[each.name] = (kind, Field(default=each.default))
    try:
        return create_model("Parameters", __base__=WorkloadParameters, **fields)
    except (PydanticUserError, NameError) as error:
        raise InvalidWorkloadError(f"{place(arrays)}: {error}") from error


def _arrays(draw: Callable[..., Any], functions: Sequence[Callable[..., Any]]) -> Callable[..., Arrays]:
    def arrays(_self: Workload, parameters: Any, rng: "Generator") -> Arrays:
        before = frameworks.packages() & sys.modules.keys()
        found = unpickled(draw)(rng, **parameters.model_dump())
        if imported := sorted((frameworks.packages() & sys.modules.keys()) - before):
            raise InvalidWorkloadError(
                f"{place(draw)} imports {', '.join(imported)}, and launches of the other framework would too; use NumPy"
            )
        if not isinstance(found, Mapping):
            raise InvalidWorkloadError(
                f"{place(draw)} returned a {type(found).__name__}; it has to return a dictionary of arrays: {ARRAYS}"
            )
        for function in functions:
            _refuse_other_arrays(function, found)
        return Arrays(state={}, batches=({name: _numbers(draw, name, value) for name, value in found.items()},))

    return arrays


def _numbers(draw: Callable[..., Any], name: str, value: object) -> Array:
    """An array of numbers, from one or from what NumPy makes one of; raises InvalidWorkloadError."""
    import numpy as np

    try:
        array = np.asarray(value)
    except ValueError as error:  # lists of several lengths
        raise InvalidWorkloadError(f'{place(draw)} returned "{name}", which is not an array: {error}') from error
    if array.dtype.kind not in "biufc":
        raise InvalidWorkloadError(
            f'{place(draw)} returned "{name}" as {given(value)}; it has to be an array of numbers'
        )
    return array


def _program(function: Callable[..., Any]) -> Callable[..., Program]:
    def build(_self: Workload, _parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        plain = unpickled(function)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            return state, plain(**batch)

        # Errors and what looks for captured arrays point at the function; frameworks see what step itself takes.
        vars(step).update(__signature__=inspect.signature(step), __wrapped__=plain)
        batches = [tools.put(dict(batch)) for batch in arrays.batches]
        before = [_versions(batch) for batch in batches]

        def export(_state: Any, out: Any) -> Mapping[str, Any]:
            for batch, versions in zip(batches, before, strict=True):
                _refuse_changed(plain, batch, versions)
            return _named(plain, out)

        return Program(state={}, step=step, batches=batches, export=export)

    return build


def _versions(batch: Mapping[str, Any]) -> dict[str, int | None]:
    """How often each tensor was changed in place; NumPy's arrays cannot be from here on, and JAX's never can."""
    for array in batch.values():
        if hasattr(array, "setflags"):
            array.setflags(write=False)
    return {name: getattr(array, "_version", None) for name, array in batch.items()}


def _refuse_changed(function: Callable[..., Any], batch: Mapping[str, Any], versions: Mapping[str, int | None]) -> None:
    """The next call would work on what this one has left."""
    changed = [name for name, array in batch.items() if getattr(array, "_version", None) != versions[name]]
    if changed:
        raise InvalidWorkloadError(
            f"{place(function)} changes {', '.join(changed)} in place, and its next call would start from that; "
            "copy it first"
        )


def _refuse_other_arrays(function: Callable[..., Any], batch: NamedArrays) -> None:
    try:
        inspect.signature(function).bind(**batch)
    except TypeError as error:
        given = ", ".join(batch) or "nothing"
        raise InvalidWorkloadError(f"{place(function)} is given the arrays {given}: {error}") from None


def _named(function: Callable[..., Any], out: Any) -> Mapping[str, Any]:
    """What a function returned, by names: a dictionary has them, others are counted; raises InvalidWorkloadError."""
    if isinstance(out, Mapping):
        named = dict(out)
    elif isinstance(out, tuple | list):
        named = {f"{RESULT}{index}": each for index, each in enumerate(out)}
    else:
        named = {RESULT: out}
    for name, each in named.items():
        if not isinstance(name, str):
            raise InvalidWorkloadError(f"{place(function)} names a result {name!r}; a name is a string")
        if not hasattr(each, "dtype"):
            which = "" if each is out else f'"{name}" as '
            raise InvalidWorkloadError(
                f"{place(function)} returned {which}{given(each)}; it has to return an array, or several in a tuple or "
                f"a dictionary"
            )
    return named


def _reference(right: Callable[..., Any]) -> Callable[..., NamedArrays]:
    def reference(_self: Workload, _parameters: Any, arrays: Arrays, _units: int) -> NamedArrays:
        return _named(right, right(**arrays.batches[0]))

    return reference
