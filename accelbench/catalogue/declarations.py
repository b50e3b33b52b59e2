"""Read what a script declares in addition to its functions: `measure`, `cost` and `operations`.

Each is a dictionary, or a function that returns one; such a function may take parameters of `arrays()` by name.
"""

import dataclasses
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import PositiveInt, TypeAdapter, ValidationError

from accelbench.catalogue.pickled import unpickle
from accelbench.catalogue.workload_checks import ERRORS, InvalidWorkloadError, check_cost, describe, location, type_of
from accelbench.problem import describe_unknown
from accelbench.workload import Cost, Measure, Operations

NAMES = ("measure", "cost", "operations")
"""Names of the declarations that a script may have."""
FLOAT_BYTES = "float_bytes"
"""Name by which a function `cost` gets the bytes of a floating-point number."""

Declared = TypeVar("Declared")


@dataclass(frozen=True)
class FunctionMeasure(Measure):
    """Describe how a call of a function is to be measured.

    Attributes:
        units: Units of work in one call; if `arrays()` returns several batches, this may be a list for their calls.
    """

    protocol: Literal["steady", "latency"] = "steady"
    unit: str = "call"
    units: PositiveInt | tuple[PositiveInt, ...] = 1


@dataclass(frozen=True)
class Declarations:
    """Hold what a script declares; each method evaluates one declaration for given values of the parameters."""

    values: Mapping[str, Any]
    """What the script declares, by name."""
    source: str
    """Where it is declared, for error messages."""

    def measure(self, parameters: Mapping[str, Any]) -> FunctionMeasure:
        """Return how a call is measured; raises InvalidWorkloadError."""
        return self._read("measure", FunctionMeasure, Measure, parameters) or FunctionMeasure()

    def units(self, parameters: Mapping[str, Any], calls: int) -> int:
        """Return the units of work in one step, which makes `calls` calls, one for each batch.

        Raises InvalidWorkloadError if the declared units are invalid, or those of another number of calls.
        """
        units = self.measure(parameters).units
        if isinstance(units, int):
            return units * calls
        if len(units) != calls:
            raise InvalidWorkloadError(
                f"{self.source}: measure lists the units of {len(units)} calls, and arrays() returns {calls} batches"
            )
        return sum(units)

    def cost(self, parameters: Mapping[str, Any], float_bytes: int) -> Cost | None:
        """Return the cost of one unit of work; None if it is not declared. Raises InvalidWorkloadError.

        A script declares the cost of one call or, if its `measure` lists the units of several calls, of all these calls
        together.
        """
        cost = self._read("cost", Cost, Cost, {**parameters, FLOAT_BYTES: float_bytes})
        if cost is None:
            return None
        check_cost(cost, f"{self.source}: cost gives")
        units = self.measure(parameters).units
        declared_units = sum(units) if isinstance(units, tuple) else units
        return Cost(flops=cost.flops / declared_units, bytes=cost.bytes / declared_units)

    def operations(self, parameters: Mapping[str, Any]) -> Operations | None:
        """Return the operations of one unit of work; None if they are not declared. Raises InvalidWorkloadError.

        A script declares the operations of a call, so a call has to be one unit.
        """
        operations = self._read("operations", Operations, Operations, parameters)
        if operations and self.measure(parameters).units != 1:
            raise InvalidWorkloadError(
                f"{self.source}: operations are those of a call, which has to be one unit, but measure declares "
                "several: remove one of the two declarations"
            )
        return operations

    def check(self, parameters: Mapping[str, Any]) -> None:
        """Raise InvalidWorkloadError if a declaration is invalid with these parameters, which have their defaults.

        A declared function must not require a parameter that it will not get.
        """
        for name, declared in self.values.items():
            if callable(declared):
                known_names = {*parameters, FLOAT_BYTES} if name == "cost" else {*parameters}
                _refuse_unknown_parameters(name, declared, known_names)
        self.measure(parameters)
        self.cost(parameters, float_bytes=4)  # the size of a float32; any size would do
        self.operations(parameters)

    def _read(
        self, name: str, expected_type: type[Declared], accepted_type: type, parameters: Mapping[str, Any]
    ) -> Declared | None:
        """Return what is declared under `name`, as an `expected_type`; None if nothing is. Raises InvalidWorkloadError.

        A script declares a dictionary, an instance of `accepted_type`, or a function that returns one of these; a
        function `cost` may also return None. `accepted_type` is the class that a script can import: `expected_type` or
        a class that it inherits.
        """
        declared = self.values.get(name)
        if declared is None:
            return None
        where = f"{self.source}: {name}"
        if callable(declared):
            where = location(declared)
            taken_names = inspect.signature(declared).parameters
            arguments = {parameter: value for parameter, value in parameters.items() if parameter in taken_names}
            try:
                declared = unpickle(declared)(**arguments)
            except ERRORS as error:
                raise InvalidWorkloadError(f"{where}: {describe(error)}") from error
        if isinstance(declared, accepted_type):
            declared = _to_dictionary(declared)
        is_unknown_cost = declared is None and expected_type is Cost  # a function may know only some parameters' cost
        if is_unknown_cost:
            return None
        if not isinstance(declared, Mapping):
            example = _example(expected_type)
            raise InvalidWorkloadError(f"{where} is {type_of(declared)}; it has to be a dictionary, {example}")
        return _validate(declared, expected_type, where)


def literal(name: str, declared: object, source: str) -> str:
    """Return Python code for the dictionary or dataclass that is declared under `name`; raises InvalidWorkloadError."""
    declarations = Declarations({name: declared}, source)
    values = {  # of these only `name` is declared; the other values are defaults
        "measure": declarations.measure({}),
        "cost": declarations.cost({}, float_bytes=4),
        "operations": declarations.operations({}),
    }
    return repr(_to_dictionary(values[name]))


def _refuse_unknown_parameters(name: str, function: Callable[..., Any], known_names: Collection[str]) -> None:
    """Raise InvalidWorkloadError if the function `name` requires a parameter that is not in `known_names`."""
    unknown_names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.name not in known_names and parameter.default is parameter.empty
    ]
    if unknown_names:
        raise InvalidWorkloadError(
            f"{location(function)} takes {', '.join(unknown_names)}, and {name}() gets parameters of arrays() only; "
            f"if it is a helper, call it _{name}"
        )


def _to_dictionary(declared: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, without those that have their default value.

    A `FunctionMeasure` that is made of the fields of a `Measure` then has its own defaults for the others.
    """
    values = {field.name: getattr(declared, field.name) for field in dataclasses.fields(declared)}
    defaults = {field.name: field.default for field in dataclasses.fields(declared)}
    return {name: value for name, value in values.items() if value != defaults[name]}


def _validate(declared: Mapping[str, Any], expected_type: type[Declared], where: str) -> Declared:
    """Return an instance of the dataclass `expected_type` with the declared values.

    Raises InvalidWorkloadError for an unknown key or an invalid value. `where` begins its message.
    """
    known_names = [field.name for field in dataclasses.fields(expected_type)]  # type: ignore[arg-type]
    for name in declared:
        if name not in known_names:
            raise InvalidWorkloadError(f"{where}: {describe_unknown('key', str(name), known_names)}")
    try:
        return TypeAdapter(expected_type).validate_python(dict(declared))
    except ValidationError as error:
        detail = error.errors()[0]
        key = detail["loc"][0]
        if detail["type"] == "missing":
            raise InvalidWorkloadError(f'{where}: "{key}" is missing, {_example(expected_type)}') from None
        message = detail["msg"][:1].lower() + detail["msg"][1:]
        raise InvalidWorkloadError(f'{where}: "{key}": {declared[str(key)]!r}: {message}') from None


def _example(declared_type: type) -> str:
    """Return the end of an error message about a declaration, with an example: `such as {"products": 2}`."""
    examples = {
        FunctionMeasure: '{"protocol": "latency"}',
        Cost: '{"flops": 2e9, "bytes": 1e6}',
        Operations: '{"products": 2}',
    }
    return f"such as {examples[declared_type]}"
