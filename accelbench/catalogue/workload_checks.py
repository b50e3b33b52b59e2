"""Check whether a class from a script or an installed package can be measured, before anything runs.

What only a run shows is checked during the run: what a method returns, and what a program's step does.
"""

import concurrent.futures
import functools
import inspect
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
from accelbench.problem import describe_unknown
from accelbench.workload import Cost, Measure, Program, Workload

Returned = TypeVar("Returned")
UNFINISHED = (concurrent.futures.Future, threading.Thread, types.FunctionType, types.MethodType, functools.partial)
"""Types that a step must not return in place of numbers."""
ERRORS = (Exception, SystemExit)
"""Exceptions of users' code that are reported; an unreported `sys.exit()` would end this process without a message."""
STATE_EXPORT = Program.__dataclass_fields__["export"].default
"""Default export of a program: the state itself, which then needs names."""
EXPORT = 'Program(..., export=lambda state, out: {"x": state})'
SKELETONS = {
    "arrays": 'def arrays(self, parameters, rng): return Arrays(state={"x": rng.standard_normal(1000)})',
}
"""Advice for a required method that is missing."""
OPTIONAL_METHODS = frozenset({"reference", "cost"})
"""Methods that a workload may leave out, so that a misspelt one would have no effect and no error."""


SIMILARITY = 0.8
"""Minimum of difflib's ratio for a misspelt name: `torch` for pytorch has it, `difference` for reference does not."""


class InvalidWorkloadError(Exception):
    """Report a workload that cannot be measured; the message has the file, the line and the reason."""


def line_of(error: BaseException, file: Path) -> str:
    """Return `my_filter.py, line 12`, the last line of the file in the traceback; empty if there is none."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file.name}, line {lines[-1]}" if lines else ""


def invalid(error: BaseException, file: Path) -> InvalidWorkloadError:
    """Return the InvalidWorkloadError for what the code in `file` raised, with the line in it."""
    return InvalidWorkloadError(f"{line_of(error, file) or file.name}: {describe(error)}")


def describe(error: BaseException) -> str:
    """Describe the exception in one line, with advice if Python's own message is not enough."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        return f'{text}: it ends the process; code that the file runs by itself belongs under if __name__ == "__main__"'
    return text


def location(function: Callable[..., Any]) -> str:
    """Return `my_filter.py, line 12: Filter.cost()`, or the name alone if it is not written in Python."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = f"{getattr(plain, '__qualname__', type(plain).__name__)}()"
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: {name}" if code else name


def call_method(method: Callable[..., Returned], kind: type[Returned], *arguments: Any) -> Returned:
    """Call a workload's method; raises InvalidWorkloadError if it does not return a `kind`."""
    _check_signature(method)
    value = method(*arguments)
    _check_type(value, kind, method)
    return value


def _check_type(value: object, kind: type, method: Callable[..., Any]) -> None:
    """Raise InvalidWorkloadError if what the method returned is no `kind`."""
    if not isinstance(value, kind):
        expected = f"accelbench.workload.{kind.__name__}"
        raise InvalidWorkloadError(f"{location(method)} returned {type_of(value)}; it has to return {expected}")


def cost(workload: Workload, parameters: Any, float_bytes: int) -> Cost | None:
    """Return the workload's cost, or None if it declares none; raises InvalidWorkloadError."""
    _check_signature(workload.cost)
    if (declared := workload.cost(parameters, float_bytes)) is None:
        return None
    _check_type(declared, Cost, workload.cost)
    for name in ("flops", "bytes"):
        if not isinstance(getattr(declared, name), Real):
            kind = type(getattr(declared, name)).__name__
            raise InvalidWorkloadError(f"{location(workload.cost)} returned {name} as a {kind}; it has to be a number")
    return declared


def check_step(step: Callable[..., Any], returned: Any) -> None:
    """Raise InvalidWorkloadError if the step did not return a pair of state and output, or returned a promise."""
    if isinstance(returned, tuple) and len(returned) == 2:  # noqa: PLR2004
        if unfinished := next(_unfinished(returned), None):
            raise InvalidWorkloadError(
                f"{location(step)} returned a {unfinished}, and nothing waits for it; a step has to return its results"
            )
        return
    raise InvalidWorkloadError(
        f"{location(step)} returned {type_of(returned)}; a step has to return a tuple of two, (state, out)"
    )


def check_names(build: Callable[..., Any], program: Program) -> None:
    """Raise InvalidWorkloadError if the arrays that are compared with the reference have no names."""
    if program.export is STATE_EXPORT and not isinstance(program.state, Mapping):
        raise InvalidWorkloadError(
            f"{location(build)}: its state is {type_of(program.state)}, not a dictionary of named arrays, so name what "
            f"is compared with the reference: {EXPORT}"
        )


def call_export(program: Program, state: Any, out: Any) -> Mapping[str, Any]:
    """Return the arrays that are compared with the reference, by name; raises InvalidWorkloadError."""
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
    """Describe the type of a value for a sentence: `a list`, `a tuple of 3`, `an array of shape (2, 3)`."""
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    if hasattr(value, "shape"):
        return f"an array of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


def _unfinished(value: Any) -> Iterator[str]:
    """Yield the type of each part of a step's result that is a promise of a result."""
    if isinstance(value, tuple | list):
        yield from (name for part in value for name in _unfinished(part))
    elif isinstance(value, Mapping):
        yield from (name for part in value.values() for name in _unfinished(part))
    elif isinstance(value, UNFINISHED) or inspect.isawaitable(value) or inspect.isgenerator(value):
        yield str(type(value).__name__)


def file_of(kind: type[Workload]) -> Path:
    """Return the file in which the class is written."""
    return Path(inspect.getfile(kind))


def instantiate(kind: type[Workload]) -> Workload:
    """Return an instance that has everything a workload needs; raises InvalidWorkloadError."""
    if not kind.hand_written:
        return kind()
    try:
        file, line = file_of(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError) as error:
        raise InvalidWorkloadError(f"class {kind.__name__} has no source file for errors to point at") from error
    try:
        return _instantiate(kind, f"{file.name}, line {line}: class {kind.__name__}")
    except ERRORS as error:
        raise error if isinstance(error, InvalidWorkloadError) else invalid(error, file) from error


def _instantiate(kind: type[Workload], where: str) -> Workload:
    """Instantiate a class and check its modes, parameters, methods and cost; `where` begins the errors' messages."""
    for problem in _mode_problems(kind.modes):
        raise InvalidWorkloadError(f"{where}: {problem}")
    try:
        defaults = kind.Parameters()
    except ValidationError as error:
        fields = ", ".join(str(detail["loc"][0]) for detail in error.errors() if detail["loc"])
        raise InvalidWorkloadError(f"{where}: every parameter needs a default; {fields} has none") from error
    workload = kind()
    variants = workload.variants()
    timed = call_method(workload.measure, Measure, defaults).protocol != "observe"
    needed = {variant.method for variant in variants.values()} | {"arrays"}
    missing = sorted(name for name in needed if getattr(kind, name, None) is getattr(Workload, name, None))
    if missing:
        raise InvalidWorkloadError(f"{where} {_describe_missing(kind, missing)}")
    for name in OPTIONAL_METHODS - vars(kind).keys():
        if misspelling := misspelt(name, vars(kind).keys() - vars(Workload).keys()):
            raise InvalidWorkloadError(f"{where} has no {name}(); did you mean {name}() by {misspelling}()?")
    if not variants:
        raise InvalidWorkloadError(f"{where} has no variants: modes is empty, and nothing is marked with @variant")
    for name in sorted(needed | OPTIONAL_METHODS):
        _check_signature(getattr(workload, name))
    if timed:
        cost(workload, defaults, 4)
    return workload


def misspelt(name: str, others: Iterable[str]) -> str:
    """Return which of `others` looks like `name`; empty if none does."""
    return next(iter(get_close_matches(name, others, n=1, cutoff=SIMILARITY)), "")


def _describe_missing(kind: type[Workload], missing: Sequence[str]) -> str:
    """Describe which methods are missing, and what to write."""
    advice = []
    for name in missing:
        if misspelling := misspelt(name, vars(kind).keys() - vars(Workload).keys()):
            advice.append(f"did you mean {name}() by {misspelling}()?")
        elif name in SKELETONS:
            advice.append(f"write {SKELETONS[name]}")
        else:
            other_modes = {other: kind.modes[other] for other in kind.modes if other != name}
            advice.append(f"write it, or leave {name} out: modes = {other_modes}".replace("'", '"'))
    return f"has no {', no '.join(f'{name}()' for name in missing)}: {'; '.join(advice)}"


def _check_signature(method: Callable[..., Any]) -> None:
    """Raise InvalidWorkloadError if the method cannot be called with its arguments."""
    name = getattr(method, "__name__", "")
    declared = list(inspect.signature(getattr(Workload, name, Workload.jax)).parameters)
    try:
        inspect.signature(method).bind(*declared[1:])
    except TypeError as error:
        raise InvalidWorkloadError(f"{location(method)} takes ({', '.join(declared)}): {error}") from error


def _mode_problems(modes: object) -> Iterator[str]:
    """Yield what is wrong with a workload's `modes`: its types, unknown frameworks, unknown modes."""
    example = 'such as modes = {"jax": ("jit",)}'
    if not isinstance(modes, Mapping):
        yield f"modes is a {type(modes).__name__}; it has to give each framework its modes, {example}"
        return
    for framework, named in modes.items():
        try:
            known = frameworks.find(str(framework)).modes
        except frameworks.UnknownFrameworkError as error:
            yield f"modes: {error}"
            continue
        if not isinstance(named, tuple | list):
            yield f"modes: {framework} has a {type(named).__name__}; it has to be a tuple of modes, {example}"
        else:
            unknown_modes = [str(mode) for mode in named if str(mode) not in known]
            yield from (f"modes: {framework}: {describe_unknown('mode', mode, known)}" for mode in unknown_modes)
