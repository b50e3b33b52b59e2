"""Check whether a class from a script or an installed package can be measured, before anything runs.

What a method returns and what a program's step does is checked later, when they run.
"""

import bdb
import concurrent.futures
import functools
import inspect
import re
import threading
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from numbers import Real
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from accelbench import frameworks
from accelbench.catalogue.numbers import NotNumbersError, to_numbers
from accelbench.document import shorten
from accelbench.problem import describe_unknown
from accelbench.workload import Array, Arrays, Cost, Measure, Operations, Program, Workload

Returned = TypeVar("Returned")
UNFINISHED = (concurrent.futures.Future, threading.Thread, types.FunctionType, types.MethodType, functools.partial)
"""Types whose work may not be done yet, so that a step must not return them in place of arrays."""
ERRORS = (Exception, SystemExit)
"""Exceptions of users' code that are reported; an unreported `sys.exit()` would end this process without a message."""
EXPORT = 'Program(..., export=lambda state, out: {"x": state})'
"""Example of an export, for error messages."""
SKELETONS = {
    "arrays": 'def arrays(self, parameters, rng): return Arrays(state={"x": rng.standard_normal(1000)})',
}
"""An example of each required method, for error messages."""
RESULT = "y"
"""Name of the single array that a function returns."""
MAXIMUM_NAME_CHARACTERS = 1000
MAXIMUM_QUOTED_CHARACTERS = 80
"""Maximum length of a name that an error quotes."""
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
"""Matches half of a surrogate pair, which UTF-8 cannot encode, so that no file and no JSON can contain it."""
MAXIMUM_COST = 1e30
"""Maximum operations or bytes of one unit: no machine runs so many, and rates stay finite."""
NO_INPUT = "EOF when reading a line"
"""Message of the exception that `input()` raises where standard input is empty."""
OPTIONAL_METHODS = frozenset({"reference", "canonical", "cost"})
"""Methods that a workload may omit. A misspelt one would be ignored silently, so misspellings are looked for."""


SIMILARITY = 0.8
"""Minimum of difflib's ratio for a misspelt name: `torch` reaches it for pytorch, `difference` not for reference."""


class InvalidWorkloadError(Exception):
    """Report a workload that cannot be measured; the message has the file, the line and the reason."""


def line_of(error: BaseException, file: Path) -> str:
    """Return the innermost line of `file` in the error's traceback, as `my_filter.py, line 12`; "" if there is none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file.name}, line {lines[-1]}" if lines else ""


def to_invalid_workload_error(error: BaseException, file: Path) -> InvalidWorkloadError:
    """Convert an exception of the code in `file` to an InvalidWorkloadError."""
    return InvalidWorkloadError(f"{line_of(error, file) or file.name}: {describe(error)}")


def describe(error: BaseException) -> str:
    """Describe the exception by its type and message, with advice on code that ends the process or waits for input."""
    text = f"{type(error).__name__}: {error}".rstrip(": ")  # the type alone if there is no message
    if isinstance(error, SystemExit):
        return f'{text}: it ends the process; code that the file runs by itself belongs under if __name__ == "__main__"'
    if isinstance(error, bdb.BdbQuit):
        return f"{text}: a breakpoint stops here, where nobody can continue; remove it"
    if isinstance(error, EOFError) and str(error) == NO_INPUT:
        return f"{text}: nobody can answer input() here; take the value as a parameter of arrays()"
    return text


def location(function: Callable[..., Any]) -> str:
    """Return where a function is defined, as `my_filter.py, line 12: Filter.cost()`.

    For a function that is not written in Python, return only its name.
    """
    unwrapped = inspect.unwrap(function)
    name = f"{getattr(unwrapped, '__qualname__', type(unwrapped).__name__)}()"
    code = getattr(unwrapped, "__code__", None)
    if code is None:  # not written in Python
        return name
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: {name}"


def call_method(method: Callable[..., Returned], expected_type: type[Returned], *arguments: Any) -> Returned:
    """Call a workload's method with these arguments, and return its result.

    Raises InvalidWorkloadError if the method's parameters are not those that `Workload` declares, or if the result has
    another type than `expected_type`.
    """
    _check_signature(method)
    value = method(*arguments)
    _check_type(value, expected_type, method)
    return value


def _check_type(value: object, expected_type: type, method: Callable[..., Any]) -> None:
    """Raise InvalidWorkloadError if `value`, which the method returned, has another type than `expected_type`."""
    if not isinstance(value, expected_type):
        expected = f"accelbench.workload.{expected_type.__name__}"
        raise InvalidWorkloadError(f"{location(method)} returned {type_of(value)}; it has to return {expected}")


def cost(workload: Workload, parameters: Any, float_bytes: int) -> Cost | None:
    """Return the cost that the workload declares, after checking it; None if it declares none.

    `float_bytes` is the size of one floating-point number. Raises InvalidWorkloadError for an invalid cost.
    """
    _check_signature(workload.cost)
    declared_cost = workload.cost(parameters, float_bytes)
    if declared_cost is None:
        return None
    _check_type(declared_cost, Cost, workload.cost)
    check_cost(declared_cost, f"{location(workload.cost)} returned")
    return declared_cost


def check_cost(declared_cost: Cost, subject: str) -> None:
    """Raise InvalidWorkloadError if the cost is not a number or out of range; `subject` begins the message."""
    for name in ("flops", "bytes"):
        value = getattr(declared_cost, name)
        is_number = isinstance(value, Real)
        if not is_number:
            raise InvalidWorkloadError(f"{subject} {name} as a {type(value).__name__}; it has to be a number")
        if not 0 <= value <= MAXIMUM_COST:
            raise InvalidWorkloadError(f"{subject} {name} as {value}; it has to be between 0 and {MAXIMUM_COST:g}")


def operations(workload: Workload, parameters: Any) -> Operations | None:
    """Return the operations that the workload declares for a unit, after checking them; None if it declares none.

    Raises InvalidWorkloadError for an invalid number of operations.
    """
    _check_signature(workload.operations)
    declared = workload.operations(parameters)
    if declared is None:
        return None
    _check_type(declared, Operations, workload.operations)
    for name, count in vars(declared).items():
        if not isinstance(count, int) or count < 0:
            raise InvalidWorkloadError(
                f"{location(workload.operations)} returned {name} as {count!r}; it has to be a whole number, 0 or more"
            )
    return declared


def check_step(step: Callable[..., Any], returned: Any) -> None:
    """Raise InvalidWorkloadError unless a step returned a pair without unfinished results, such as a Future."""
    is_pair = isinstance(returned, tuple) and len(returned) == 2  # noqa: PLR2004
    if not is_pair:
        raise InvalidWorkloadError(
            f"{location(step)} returned {type_of(returned)}; a step has to return a tuple of two, (state, out)"
        )
    unfinished_type = next(_unfinished_types(returned), None)
    if unfinished_type:
        raise InvalidWorkloadError(
            f"{location(step)} returned a {unfinished_type}, and nothing waits for it; a step has to return its results"
        )


def _is_default_export(function: Callable[..., Any]) -> bool:
    """Return True for the default of `Program.export`, which returns the state, a dictionary of named arrays."""
    return function is Program.__dataclass_fields__["export"].default


def check_names(build: Callable[..., Any], program: Program) -> None:
    """Raise InvalidWorkloadError if the arrays to compare with the reference have no names.

    `build` is the workload's method that built the program.
    """
    if _is_default_export(program.export) and not isinstance(program.state, Mapping):
        raise InvalidWorkloadError(
            f"{location(build)}: its state is {type_of(program.state)}, not a dictionary of named arrays, so name what "
            f"is compared with the reference: {EXPORT}"
        )


def numbers_by_name(
    function: Callable[..., Any], values: Mapping[str, Any], convert: Callable[[Any], Array] = to_numbers
) -> dict[str, Array]:
    """Return the values that a function returned, by name, as arrays of numbers.

    Args:
        function: The function that returned the values; error messages have its location.
        values: The values, by the names of the arrays.
        convert: Converts a value to an array; raises NotNumbersError for a value that is no array of numbers.

    Raises:
        InvalidWorkloadError: A name is not a string or too long, or `convert` raised NotNumbersError.
    """
    arrays = {}
    for name, value in values.items():
        _check_array_name(function, name)
        try:
            arrays[name] = convert(value)
        except NotNumbersError as error:
            # The error ends the sentence: `my_filter.py, line 3: jax() returned "x" as a str; it has to be ...`
            subject = "the program's state has" if _is_default_export(function) else f"{location(function)} returned"
            # A single result has its name from accelbench, so the author does not know the name.
            quoted_name = "" if values.keys() == {RESULT} else f'"{name}" as '
            raise InvalidWorkloadError(f"{subject} {quoted_name}{error}") from error
    return arrays


def _check_array_name(function: Callable[..., Any], name: object) -> None:
    """Raise InvalidWorkloadError if a function names an array by anything but a string that can be stored."""
    if not isinstance(name, str) or len(name) > MAXIMUM_NAME_CHARACTERS or LONE_SURROGATE.search(name):
        quoted = shorten(repr(name), MAXIMUM_QUOTED_CHARACTERS)
        raise InvalidWorkloadError(
            f"{location(function)} names an array {quoted}; a name is a string of at most "
            f"{MAXIMUM_NAME_CHARACTERS} characters"
        )


def call_reference(workload: Workload, parameters: Any, arrays: Arrays, units: int) -> dict[str, Array]:
    """Call the workload's method `reference`, and return its results by name as arrays of numbers.

    Raises InvalidWorkloadError if it returns anything else.
    """
    results = workload.reference(parameters, arrays, units)
    if not isinstance(results, Mapping):
        raise InvalidWorkloadError(
            f"{location(workload.reference)} returned {type_of(results)}; it has to return a dictionary of arrays"
        )
    return numbers_by_name(workload.reference, results)


def call_canonical(
    workload: Workload, parameters: Any, arrays: Arrays, outputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Call the workload's method `canonical`, and return the outputs in the form in which they are compared.

    Raises InvalidWorkloadError if it returns anything but arrays by name, or none.
    """
    results = workload.canonical(parameters, arrays, outputs)
    if not isinstance(results, Mapping) or not results:
        raise InvalidWorkloadError(
            f"{location(workload.canonical)} returned {type_of(results) if results else 'nothing'}; it has to return "
            "the outputs in the form in which they are compared, as a dictionary of arrays"
        )
    return numbers_by_name(workload.canonical, results)


def refuse_canonical_with_random_outputs(workload: Workload, measure: Measure) -> None:
    """Raise InvalidWorkloadError if a workload has a canonical form and declares its outputs random.

    Only outputs that are compared number by number need such a form. Random outputs are compared by their moments or
    shapes.
    """
    if workload.has_canonical() and measure.random:
        raise InvalidWorkloadError(
            f"{location(workload.canonical)} gives outputs the form in which their numbers are compared, but measure "
            f'declares them random, so that only their {measure.random} are compared: remove canonical(), or "random" '
            "from measure"
        )


def call_export(program: Program, state: Any, out: Any) -> Mapping[str, Any]:
    """Call the program's export, and return the arrays by name; raises InvalidWorkloadError for another result."""
    exported = program.export(state, out)
    if not isinstance(exported, Mapping):
        raise InvalidWorkloadError(
            f"{location(program.export)} returned {type_of(exported)}; export has to return a dictionary of named "
            f"arrays, as in {EXPORT}"
        )
    for name, value in exported.items():
        if not hasattr(value, "dtype"):
            raise InvalidWorkloadError(
                f'{location(program.export)} exports "{name}" as {type_of(value)}; it has to be an array, '
                f"as in {EXPORT}"
            )
    return exported


def type_of(value: Any) -> str:
    """Describe the type of a value, such as `a tuple of 3`."""
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


def _unfinished_types(value: Any) -> Iterator[str]:
    """Yield the type of each unfinished result in `value`, such as a Future."""
    if isinstance(value, tuple | list):
        for item in value:
            yield from _unfinished_types(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _unfinished_types(item)
    elif isinstance(value, UNFINISHED) or inspect.isawaitable(value) or inspect.isgenerator(value):
        yield str(type(value).__name__)


def file_of(workload_type: type[Workload]) -> Path:
    """Return the file that defines the class."""
    return Path(inspect.getfile(workload_type))


def instantiate(workload_type: type[Workload]) -> Workload:
    """Check a workload's class, and return an instance of it; raises InvalidWorkloadError."""
    if not workload_type.hand_written:  # made from functions, which were checked when the class was made
        workload = workload_type()
        refuse_canonical_with_random_outputs(workload, workload.measure(workload_type.Parameters()))
        return workload
    try:
        file = file_of(workload_type)
        _, line = inspect.getsourcelines(workload_type)
    except (OSError, TypeError) as error:
        raise InvalidWorkloadError(
            f"class {workload_type.__name__} has no source file for errors to point at"
        ) from error
    try:
        return _check_and_instantiate(workload_type, f"{file.name}, line {line}: class {workload_type.__name__}")
    except InvalidWorkloadError:  # its message already has the file and the line
        raise
    except ERRORS as error:
        raise to_invalid_workload_error(error, file) from error


def _check_and_instantiate(workload_type: type[Workload], where: str) -> Workload:
    """Check the class, and return an instance; raises InvalidWorkloadError.

    `where` begins a message about the class; a message about one of its methods begins with the method's location.
    """
    mode_problem = next(_mode_problems(workload_type.modes), None)
    if mode_problem is not None:
        raise InvalidWorkloadError(f"{where}: {mode_problem}")
    try:
        defaults = workload_type.Parameters()
    except ValidationError as error:
        fields = ", ".join(str(detail["loc"][0]) for detail in error.errors() if detail["loc"])
        raise InvalidWorkloadError(f"{where}: every parameter needs a default; {fields} has none") from error
    workload = workload_type()
    variants = workload.variants()
    measure = call_method(workload.measure, Measure, defaults)
    required = {variant.method for variant in variants.values()} | {"arrays"}
    # A class that does not define a method has the one of Workload.
    missing = sorted(name for name in required if getattr(workload_type, name, None) is getattr(Workload, name, None))
    if missing:
        raise InvalidWorkloadError(f"{where} {_describe_missing(workload_type, missing)}")
    # A misspelt optional method would have no effect and no error.
    for name in OPTIONAL_METHODS - vars(workload_type).keys():
        if misspelling := find_misspelling(name, vars(workload_type).keys() - vars(Workload).keys()):
            raise InvalidWorkloadError(f"{where} has no {name}(); did you mean {name}() by {misspelling}()?")
    if not variants:
        raise InvalidWorkloadError(f"{where} has no variants: modes is empty, and nothing is marked with @variant")
    for name in sorted(required | OPTIONAL_METHODS):
        _check_signature(getattr(workload, name))
    refuse_canonical_with_random_outputs(workload, measure)
    is_timed = measure.protocol != "observe"
    if is_timed:  # an observed workload needs no cost
        cost(workload, defaults, float_bytes=4)  # only to check it; any size would do
    return workload


def find_misspelling(name: str, candidates: Iterable[str]) -> str:
    """Return a candidate that looks like a misspelling of `name`, or ""."""
    return next(iter(get_close_matches(name, candidates, n=1, cutoff=SIMILARITY)), "")


def _describe_missing(workload_type: type[Workload], missing: Sequence[str]) -> str:
    """Return the end of an error message about missing methods, such as `has no arrays(): write def arrays...`."""
    advice = []
    new_names = vars(workload_type).keys() - vars(Workload).keys()  # names that `Workload` does not have
    for name in missing:
        misspelling = find_misspelling(name, new_names)
        if misspelling:
            advice.append(f"did you mean {name}() by {misspelling}()?")
        elif name in SKELETONS:
            advice.append(f"write {SKELETONS[name]}")
        else:  # the method of a program
            other_modes = {method: modes for method, modes in workload_type.modes.items() if method != name}
            modes_code = repr(other_modes).replace("'", '"')  # double quotes, as in most code
            advice.append(f"write it, or leave {name} out: modes = {modes_code}")
    methods = ", no ".join(f"{name}()" for name in missing)
    return f"has no {methods}: {'; '.join(advice)}"


def _check_signature(method: Callable[..., Any]) -> None:
    """Raise InvalidWorkloadError unless the method accepts the arguments that `Workload` declares for its name."""
    name = getattr(method, "__name__", "")
    base_method = getattr(Workload, name, Workload.jax)  # a variant may have any name, and takes what `jax` takes
    parameters = list(inspect.signature(base_method).parameters)
    arguments = parameters[1:]  # without self
    try:
        inspect.signature(method).bind(*arguments)
    except TypeError as error:
        raise InvalidWorkloadError(f"{location(method)} takes ({', '.join(parameters)}): {error}") from error


def _mode_problems(modes: object) -> Iterator[str]:
    """Yield a message for each mistake in a workload's `modes`, which map each program's method to its modes."""
    example = 'such as modes = {"jax": ("jit",)}'
    if not isinstance(modes, Mapping):
        yield f"modes is a {type(modes).__name__}; it has to give each program its modes, {example}"
        return
    for method, method_modes in modes.items():
        try:
            known_modes = frameworks.find(frameworks.name_of(str(method))).modes
        except frameworks.UnknownFrameworkError as error:
            yield f"modes: {error}"
            continue
        if not isinstance(method_modes, tuple | list):
            type_name = type(method_modes).__name__
            yield f"modes: {method} has a {type_name}; it has to be a tuple of modes, {example}"
            continue
        for mode in method_modes:
            if str(mode) not in known_modes:
                yield f"modes: {method}: {describe_unknown('mode', str(mode), known_modes)}"
