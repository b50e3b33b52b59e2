"""Can a class that others wrote be measured? Asked of a script's and of an installed package's before anything runs.

What only running shows is asked when it runs: what a method returns, and what a program's step does.
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
from accelbench.problem import unknown
from accelbench.workload import Cost, Measure, Program, Workload

Returned = TypeVar("Returned")
PROMISES = (concurrent.futures.Future, threading.Thread, types.FunctionType, types.MethodType, functools.partial)
"""What a step may not return in place of numbers."""
RAISED = (Exception, SystemExit)
"""What others' code may raise; `sys.exit()` would end us without a word."""
UNNAMED = Program.__dataclass_fields__["export"].default
"""The export of a program that gives none: the state itself, which then has to have names."""
EXPORT = 'Program(..., export=lambda state, out: {"x": state})'
SKELETONS = {
    "arrays": 'def arrays(self, parameters, rng): return Arrays(state={"x": rng.standard_normal(1000)})',
}
"""What to write where a method is missing that no workload does without."""
OPTIONAL = frozenset({"reference", "cost"})
"""What a workload may leave out; misspelt, nobody would notice that it is not asked."""


ALIKE = 0.8
"""`torch` is meant to be pytorch; a helper called `difference` is no reference."""


class InvalidWorkloadError(Exception):
    """This is no workload that can be measured; the message says the file, the line where there is one, and why."""


def line_of(error: BaseException, file: Path) -> str:
    """`my_filter.py, line 12`: the last that the exception went through; empty where it did not come by there."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f"{file.name}, line {lines[-1]}" if lines else ""


def invalid(error: BaseException, file: Path) -> InvalidWorkloadError:
    """What the code in `file` raised, with its line."""
    return InvalidWorkloadError(f"{line_of(error, file) or file.name}: {describe(error)}")


def describe(error: BaseException) -> str:
    """The exception in one line, with what to do where Python itself says too little."""
    said = f"{type(error).__name__}: {error}"
    if isinstance(error, SystemExit):
        return f'{said}: it ends the process; code that the file runs by itself belongs under if __name__ == "__main__"'
    return said


def place(function: Callable[..., Any]) -> str:
    """`my_filter.py, line 12: Filter.cost()`, where it begins; the name alone of what is not written in Python."""
    plain = inspect.unwrap(function)
    code = getattr(plain, "__code__", None)
    name = f"{getattr(plain, '__qualname__', type(plain).__name__)}()"
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}: {name}" if code else name


def returned(method: Callable[..., Returned], kind: type[Returned], *arguments: Any) -> Returned:
    """What a workload's method makes of the arguments; raises InvalidWorkloadError where that is no `kind`."""
    _accepts(method)
    found = method(*arguments)
    _must_be(found, kind, method)
    return found


def _must_be(found: object, kind: type, method: Callable[..., Any]) -> None:
    if not isinstance(found, kind):
        wanted = f"accelbench.workload.{kind.__name__}"
        raise InvalidWorkloadError(f"{place(method)} returned {given(found)}; it has to return {wanted}")


def cost(workload: Workload, parameters: Any, float_bytes: int) -> Cost | None:
    """The workload's own, of numbers; None where it says none. Raises InvalidWorkloadError."""
    _accepts(workload.cost)
    if (found := workload.cost(parameters, float_bytes)) is None:
        return None
    _must_be(found, Cost, workload.cost)
    for name in ("flops", "bytes"):
        if not isinstance(getattr(found, name), Real):
            given = type(getattr(found, name)).__name__
            raise InvalidWorkloadError(f"{place(workload.cost)} returned {name} as a {given}; it has to be a number")
    return found


def check_step(step: Callable[..., Any], found: Any) -> None:
    """Raises InvalidWorkloadError where `found`, what the step returned, is no pair: a row of an array is no state."""
    if isinstance(found, tuple) and len(found) == 2:  # noqa: PLR2004
        if late := next(_unfinished(found), None):
            raise InvalidWorkloadError(
                f"{place(step)} returned a {late}, and nothing waits for it; a step has to return its results"
            )
        return
    raise InvalidWorkloadError(
        f"{place(step)} returned {given(found)}; a step has to return a tuple of two, (state, out)"
    )


def check_names(build: Callable[..., Any], program: Program) -> None:
    """Raises InvalidWorkloadError where nothing names what `program` is to be compared by."""
    if program.export is UNNAMED and not isinstance(program.state, Mapping):
        raise InvalidWorkloadError(
            f"{place(build)}: its state is {given(program.state)}, not a dictionary of named arrays, so name what is "
            f"compared with the reference: {EXPORT}"
        )


def exported(program: Program, state: Any, out: Any) -> Mapping[str, Any]:
    """What is compared with the reference, by name; raises InvalidWorkloadError."""
    found = program.export(state, out)
    if not isinstance(found, Mapping):
        raise InvalidWorkloadError(
            f"{place(program.export)} returned {given(found)}; export has to return a dictionary of named arrays, "
            f"as in {EXPORT}"
        )
    for name, value in found.items():
        if not hasattr(value, "dtype"):
            raise InvalidWorkloadError(
                f'{place(program.export)} exports "{name}" as {given(value)}; it has to be an array, as in {EXPORT}'
            )
    return found


def given(found: Any) -> str:
    """What something is, as it is called in a sentence."""
    if isinstance(found, tuple):
        return f"a tuple of {len(found)}"
    if hasattr(found, "shape"):
        return f"an array of shape {tuple(found.shape)}"
    return "None" if found is None else f"a {type(found).__name__}"


def _unfinished(value: Any) -> Iterator[str]:
    """The type of each thing in a step's result that promises a result instead of being one."""
    if isinstance(value, tuple | list):
        yield from (late for each in value for late in _unfinished(each))
    elif isinstance(value, Mapping):
        yield from (late for each in value.values() for late in _unfinished(each))
    elif isinstance(value, PROMISES) or inspect.isawaitable(value) or inspect.isgenerator(value):
        yield str(type(value).__name__)


def file_of(kind: type[Workload]) -> Path:
    """Where the class is written."""
    return Path(inspect.getfile(kind))


def instantiate(kind: type[Workload]) -> Workload:
    """An instance that has all that a workload needs; raises InvalidWorkloadError."""
    if not kind.written:
        return kind()
    try:
        file, line = file_of(kind), inspect.getsourcelines(kind)[1]
    except (OSError, TypeError) as error:
        raise InvalidWorkloadError(f"class {kind.__name__} has no source file for errors to point at") from error
    try:
        return _instantiate(kind, f"{file.name}, line {line}: class {kind.__name__}")
    except RAISED as error:
        raise error if isinstance(error, InvalidWorkloadError) else invalid(error, file) from error


def _instantiate(kind: type[Workload], where: str) -> Workload:
    for problem in _wrong_modes(kind.modes):
        raise InvalidWorkloadError(f"{where}: {problem}")
    try:
        defaults = kind.Parameters()
    except ValidationError as error:
        fields = ", ".join(str(each["loc"][0]) for each in error.errors() if each["loc"])
        raise InvalidWorkloadError(f"{where}: every parameter needs a default; {fields} has none") from error
    workload = kind()
    variants = workload.variants()
    timed = returned(workload.measure, Measure, defaults).protocol != "observe"
    needed = {each.method for each in variants.values()} | {"arrays"}
    missing = sorted(name for name in needed if getattr(kind, name, None) is getattr(Workload, name, None))
    if missing:
        raise InvalidWorkloadError(f"{where} {_without(kind, missing)}")
    for name in OPTIONAL - vars(kind).keys():
        if meant := misspelt(name, vars(kind).keys() - vars(Workload).keys()):
            raise InvalidWorkloadError(f"{where} has no {name}(); did you mean {name}() by {meant}()?")
    if not variants:
        raise InvalidWorkloadError(f"{where} has no variants: modes is empty, and nothing is marked with @variant")
    for name in sorted(needed | OPTIONAL):
        _accepts(getattr(workload, name))
    if timed:
        cost(workload, defaults, 4)
    return workload


def misspelt(name: str, others: Iterable[str]) -> str:
    """That of `others` which looks as if it was meant to be `name`; empty: none does."""
    return next(iter(get_close_matches(name, others, n=1, cutoff=ALIKE)), "")


def _without(kind: type[Workload], missing: Sequence[str]) -> str:
    """That these methods are missing, and what to write."""
    advice = []
    for name in missing:
        if meant := misspelt(name, vars(kind).keys() - vars(Workload).keys()):
            advice.append(f"did you mean {name}() by {meant}()?")
        elif name in SKELETONS:
            advice.append(f"write {SKELETONS[name]}")
        else:
            kept = {other: kind.modes[other] for other in kind.modes if other != name}
            advice.append(f"write it, or leave {name} out: modes = {kept}".replace("'", '"'))
    return f"has no {', no '.join(f'{name}()' for name in missing)}: {'; '.join(advice)}"


def _accepts(method: Callable[..., Any]) -> None:
    """Raises InvalidWorkloadError where the method cannot be called as workloads' are."""
    name = getattr(method, "__name__", "")
    declared = list(inspect.signature(getattr(Workload, name, Workload.jax)).parameters)
    try:
        inspect.signature(method).bind(*declared[1:])
    except TypeError as error:
        raise InvalidWorkloadError(f"{place(method)} takes ({', '.join(declared)}): {error}") from error


def _wrong_modes(modes: object) -> Iterator[str]:
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
            yield from (f"modes: {framework}: {unknown('mode', mode, known)}" for mode in unknown_modes)
