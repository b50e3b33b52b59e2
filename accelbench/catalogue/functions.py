"""Make a workload from a module: from its class, or from pure functions `y = f(x)`, one or more for each framework.

No function takes the result of its previous call. Calls still never overlap, because every framework runs the calls
that one thread dispatches in their order (docs/adr/0028-a-pure-function-is-a-workload.md).
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field, create_model
from pydantic.errors import PydanticUserError

from accelbench import frameworks
from accelbench.catalogue import programs
from accelbench.catalogue.arguments import choose_arguments, signature_of
from accelbench.catalogue.declarations import Declarations, FunctionMeasure
from accelbench.catalogue.function_programs import Setup, make_build, run_canonical, run_reference
from accelbench.catalogue.pickled import unpickle
from accelbench.catalogue.workload_checks import InvalidWorkloadError, location, numbers_by_name, type_of
from accelbench.workload import (
    Arrays,
    Cost,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)

if TYPE_CHECKING:
    from numpy.random import Generator

ARRAYS = 'def arrays(rng): return {"x": rng.standard_normal((1000, 1000))}'
"""Advice if a script has functions but no arrays()."""
LOOPING = frozenset({"scan"})
"""Modes that run several steps in a loop. A function has a single step."""


class FunctionWorkload(Workload):
    """Define what all workloads made of functions share."""

    hand_written = False
    declarations: ClassVar[Declarations]
    """What the module declares in addition to its functions."""
    setups: ClassVar[Mapping[str, Setup]]
    """The setup function of each program that has one, by the program's name."""

    def setup_function(self, method: str) -> str:
        """Return where the setup of a program is defined; empty if it has none.

        `method` is the program's name, which is also that of the workload's method that builds it.
        """
        return location(self.setups[method].function) if method in self.setups else ""

    def measure(self, parameters: Any) -> FunctionMeasure:
        """Return how a call is measured, as the module declares it."""
        return self.declarations.measure(parameters.model_dump())

    def cost(self, parameters: Any, float_bytes: int) -> Cost | None:
        """Return the cost of one unit, as the module declares it; None if it does not."""
        return self.declarations.cost(parameters.model_dump(), float_bytes)

    def operations(self, parameters: Any) -> Operations | None:
        """Return the operations of one unit, as the module declares them; None if it does not."""
        return self.declarations.operations(parameters.model_dump())

    @classmethod
    def default_uses(cls) -> tuple[str, ...]:
        """Return one variant for each program: the first mode of its framework."""
        return tuple(f"{program}/{modes[0]}" for program, modes in cls.modes.items())


def workload_class(module: ModuleType, name: str) -> type[Workload]:
    """Return the module's workload class or, if it has none, a class made from its functions.

    A class of the module is not yet checked; `name` is for error messages.

    Raises:
        InvalidWorkloadError: The module has neither functions nor exactly one class, or its functions are invalid.
    """
    classes = [
        member
        for member in vars(module).values()
        if inspect.isclass(member) and issubclass(member, Workload) and member.__module__ == module.__name__
    ]
    if not classes and (function_workload := _workload_of_functions(module, name)):
        return function_workload
    if len(classes) != 1:
        class_names = ", ".join(found_class.__name__ for found_class in classes) or "none"
        raise InvalidWorkloadError(
            f"{name}: a script has functions, such as jax(x) and pytorch(x), and arrays(rng), which makes their "
            f"inputs; or one class that inherits accelbench.workload.Workload. Classes found: {class_names}"
        )
    return classes[0]


def _workload_of_functions(module: ModuleType, name: str) -> type[FunctionWorkload] | None:
    """Make a workload of the module's functions named like frameworks; return None if there are none.

    Raises InvalidWorkloadError if no function `arrays` makes their inputs.
    """
    members = programs.find_members(module)
    if not members.programs:
        return None
    if "arrays" not in members.others:
        first_function = next(iter(members.programs.values()))
        raise InvalidWorkloadError(f"{location(first_function)}: no arrays() makes its inputs; write {ARRAYS}")
    return _make_workload(module, members, Declarations(members.declared, name))


def _make_workload(module: ModuleType, members: programs.Members, declarations: Declarations) -> type[FunctionWorkload]:
    """Make a workload class of a module's functions, and of what it declares."""
    arrays, reference = unpickle(members.others["arrays"]), members.others.get("reference")
    functions = {**members.programs, "reference": reference} if reference else dict(members.programs)
    parameters = _make_parameters(arrays)
    setups = {program: Setup(function) for program, function in members.setups.items()}
    # A setup makes further arguments, so a function that has a setup need not take the same arrays.
    without_setup = {name: function for name, function in functions.items() if name not in setups}
    programs.require_same_arrays(without_setup, parameters.model_fields)
    declarations.check(parameters().model_dump())
    methods: dict[str, Any] = {
        "__module__": module.__name__,
        "__doc__": module.__doc__ or f"{', '.join(members.programs)} by functions of the same arrays.",
        "modes": {program: programs.modes_of(program, excluded=LOOPING) for program in members.programs},
        "declarations": declarations,
        "setups": setups,
        "Parameters": parameters,
        "arrays": _make_arrays(arrays, [*without_setup.values()]),
    }
    for program, function in members.programs.items():
        framework = frameworks.find(frameworks.name_of(program))
        methods[program] = _make_program(make_build(function, framework, setups.get(program)))
    if reference:
        methods["reference"] = _make_reference(reference)
    if "canonical" in members.others:
        methods["canonical"] = _make_canonical(members.others["canonical"])
    return type("Functions", (FunctionWorkload,), methods)


def _make_parameters(arrays: Callable[..., Any]) -> type[WorkloadParameters]:
    """Make a pydantic model of the workload's parameters: the arguments of `arrays` after the random generator.

    Raises InvalidWorkloadError if `arrays` takes no generator, or a parameter without a default or of no valid type.
    """
    try:
        arguments = [*inspect.signature(arrays, eval_str=True).parameters.values()]
    except NameError:  # an annotation is imported for type checkers only
        arguments = [*inspect.signature(arrays).parameters.values()]
    # The random generator has no default, unlike a parameter.
    takes_generator = bool(arguments) and arguments[0].default is inspect.Parameter.empty
    if not takes_generator:
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
    """Make the workload's method `arrays`, which calls the script's function `arrays`, here named `draw`.

    The method checks that `draw` returns batches of arrays that each of `functions` accepts.
    """

    def arrays(_self: Workload, parameters: Any, rng: "Generator") -> Arrays:
        """Return the arrays that the script's `draw` returns, as batches; raises InvalidWorkloadError."""
        # `draw` must not import a framework; the one that this launch measures may be loaded already.
        imported_before = frameworks.packages() & sys.modules.keys()
        values = parameters.model_dump()
        drawn = unpickle(draw)(rng, **values)
        imported = sorted((frameworks.packages() & sys.modules.keys()) - imported_before)
        if imported:
            raise InvalidWorkloadError(
                f"{location(draw)} imports {', '.join(imported)}. The launches of the other framework run this code "
                "too and would load it; use NumPy"
            )
        batches = _to_batches(draw, drawn)
        for function in functions:
            choose_arguments(function, batches[0], values)  # raises an error if the function does not accept the arrays
        return Arrays(state={}, batches=batches)

    return arrays


def _to_batches(draw: Callable[..., Any], drawn: Any) -> tuple[NamedArrays, ...]:
    """Return the batches in `drawn`, which `draw` returned: a dictionary of arrays, or a list of these.

    Raises InvalidWorkloadError if it is neither, or if two batches differ in their names.
    """
    # An empty list is refused below, because it is not a dictionary.
    is_list_of_batches = isinstance(drawn, list | tuple) and len(drawn) > 0
    batches: Sequence[Any] = drawn if is_list_of_batches else [drawn]
    for batch in batches:
        if not isinstance(batch, Mapping):
            raise InvalidWorkloadError(
                f"{location(draw)} returned {type_of(batch)}; it has to return a dictionary of arrays: {ARRAYS}; or a "
                "list of dictionaries, one for each call"
            )
        if batch.keys() != batches[0].keys():
            first_names, other_names = ", ".join(map(str, batches[0])), ", ".join(map(str, batch))
            raise InvalidWorkloadError(
                f"{location(draw)} returned batches of different arrays: {first_names}; {other_names}"
            )
    # All batches get the order of the first, because functions such as `torch.sin` take arrays in their order.
    return tuple(numbers_by_name(draw, {name: batch[name] for name in batches[0]}) for batch in batches)


def _make_program(
    build: Callable[[Mapping[str, Any], Arrays, Tools, int], Program],
) -> Callable[[FunctionWorkload, Any, Arrays, Tools], Program]:
    """Make a workload's method that builds the program of one of the script's functions.

    The method calls `build` with the parameters' values, and with the units of work in a step.
    """

    def program(workload: FunctionWorkload, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Build the program.

        Its step calls the script's function once with each batch, so a step's units of work are those of all calls.
        """
        values = parameters.model_dump()
        units = workload.declarations.units(values, len(arrays.batches))
        return build(values, arrays, tools, units)

    return program


def _make_reference(function: Callable[..., Any]) -> Callable[..., NamedArrays]:
    """Make a workload's method `reference`, which calls a NumPy function.

    A function keeps no state, so its result does not depend on the number of units of work.
    """

    def reference(_self: Workload, parameters: Any, arrays: Arrays, _units: int) -> NamedArrays:
        return run_reference(function, parameters.model_dump(), arrays.batches)

    return reference


def _make_canonical(function: Callable[..., Any]) -> Callable[..., NamedArrays]:
    """Make a workload's method `canonical`, which calls a NumPy function of the outputs.

    Raises InvalidWorkloadError if the function takes no argument.
    """
    if not signature_of(function).parameters:
        raise InvalidWorkloadError(
            f"{location(function)} takes nothing; it has to take the outputs by name and to return them in the form in "
            f"which they are compared: {programs.EXAMPLES['canonical']}"
        )

    def canonical(_self: Workload, parameters: Any, arrays: Arrays, outputs: NamedArrays) -> NamedArrays:
        return run_canonical(function, parameters.model_dump(), arrays.batches, outputs)

    vars(canonical).update(__wrapped__=function)  # so that errors name the user's function
    return canonical
