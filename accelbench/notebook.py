"""Define `accelbench.compare` and `accelbench.check`, which measure or check functions of a notebook or a program.

Nothing is timed in the calling process, because it may have loaded both frameworks and compiled programs. Instead,
cloudpickle writes the functions into a script, and every launch is a new process that imports only one framework.
"""

import base64
import contextlib
import inspect
import os
import pickle
import platform
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from accelbench import frameworks
from accelbench.api.case import SCRIPT_NAME, SCRIPT_SUFFIX, PrecisionPolicy
from accelbench.api.run import BenchmarkRun, Measurement
from accelbench.catalogue import declarations, pickled
from accelbench.catalogue.arguments import choose_arguments, names_its_arrays, signature_of
from accelbench.catalogue.numbers import NotNumbersError, to_numbers
from accelbench.catalogue.pickled import format_parameters
from accelbench.catalogue.programs import SETUP_PREFIX, setup_names
from accelbench.catalogue.workload_checks import InvalidWorkloadError
from accelbench.local.check import check_cases
from accelbench.local.device import missing_frameworks, platform_of
from accelbench.local.errors import InvalidSpecError, OccupiedError, UsageError
from accelbench.local.interrupt import Signals
from accelbench.local.manifests import read_target
from accelbench.local.run import measure as measure_run
from accelbench.local.run import reserve, write_page
from accelbench.problem import describe_unknown, find_similar
from accelbench.report.launches import read_launches
from accelbench.report.live import display
from accelbench.terminal.console import console
from accelbench.terminal.functions import CheckedFunctions, ComparedFunctions
from accelbench.workload import Cost, Measure, Operations

if TYPE_CHECKING:
    from numpy.random import Generator

    from accelbench.api.result import Result
    from accelbench.launch.record import LaunchRecord

FunctionOrArrays = Callable[..., Mapping[str, Any]] | Mapping[str, Any]
MAXIMUM_BYTES = 32 * 1024 * 1024
"""Maximum size of a pickled function, because every launch reads the script. A function can draw larger arrays."""
SETTINGS = {(info.alias or name).lower(): info.alias or name for name, info in Measurement.model_fields.items()} | {
    "rounds": "rounds.max",
    "maxrounds": "rounds.max",
    "minrounds": "rounds.min",
    "timelimit": "timeLimitSeconds",
}
"""Paths of the fields of `measurement` in a run's spec, by their names as a keyword without underscores."""
INSTALL = "pip install 'accelbench[notebook]'"


class CannotBeSentError(ValueError):
    """Report a function or an array that cannot be sent to another process, and what to write instead."""


def compare(
    *,
    arrays: FunctionOrArrays,
    reference: Callable[..., Any] | None = None,
    canonical: Callable[..., Any] | None = None,
    measure: Mapping[str, Any] | Measure | Callable[..., Any] | None = None,
    cost: Mapping[str, Any] | Cost | Callable[..., Any] | None = None,
    operations: Mapping[str, Any] | Operations | Callable[..., Any] | None = None,
    variants: Sequence[str] = (),
    precision: PrecisionPolicy | None = None,
    settings: Mapping[str, object] = MappingProxyType({}),
    accept_noise: bool = False,
    processors: int | None = None,
    name: str = "compared",
    out: Path | str | None = None,
    **functions: Callable[..., Any],
) -> ComparedFunctions:
    """Measure which function is faster, and check that all compute the same.

    Args:
        arrays: Dictionary of NumPy arrays, or a function of a NumPy random generator that returns one. Each compared
            function has parameters with the names of these arrays. To test the compared functions on inputs that they
            have not had before, `arrays` is called with another generator; if it is a dictionary, each float array is
            multiplied by one number between 1.01 and 1.05.
        reference: Function of the arrays in NumPy that returns the right result; by default the baseline's function
            is run in float64 on the CPU.
        canonical: Function that brings outputs, as NumPy arrays, to one form if several forms are right. Its parameters
            have the names of outputs, and may have those of arrays too; it returns the outputs to compare. By default
            outputs are compared as they are.
        measure: How a call is measured, such as `{"protocol": "latency", "unit": "token", "units": 512}`; the fields of
            `accelbench.workload.Measure`, and the units of work in a call. `measure`, `cost` and `operations` may
            also be functions of the parameters of `arrays`.
        cost: The floating-point operations and bytes of a call, such as `{"flops": 2e9, "bytes": 1e6}`.
        operations: The matrix products and convolutions that a call needs at least, such as `{"products": 2}`.
        variants: Functions and modes to compare, such as `jax/jit`, the baseline first; by default each function in
            the first mode of its framework. The baseline is then `pytorch/eager`, without it `jax/jit`, and without
            both the first function.
        precision: Type of the computation: `float32`, the default, `float64`, `tf32`, `bfloat16` or `float16`;
            or `default`: float32 arrays, and products as each framework computes them by default.
        settings: Other fields of a BenchmarkRun's spec, such as `{"measurement.rounds.max": 20}`, and parameters of
            `arrays`, such as `{"rows": 256}`.
        accept_noise: True to count rounds that other load disturbed; if there are any, there is no verdict.
        processors: Number of CPUs that each launch may use; by default all.
        name: Name of the workload.
        out: New directory for the results; by default a new one in `results`.
        **functions: The functions to compare, by their frameworks' names. Another function of a framework has a name
            that begins with it, such as `jax_scan`, and is the variant `jax_scan/jit`. A function `setup_jax` returns
            further arguments of `jax` by name; it is called once and not timed.

    Returns:
        The results, which print as a report.

    Raises:
        CannotBeSentError: A function or an array cannot be sent to another process.
        TypeError: An argument has a wrong type.
        ValueError: An argument has a wrong value, or this machine cannot run the comparison.
        FileExistsError: `out` is not empty.
        KeyboardInterrupt: The comparison was interrupted; the results until then are stored.
        RuntimeError: There is no result.

    Example:
        >>> compare(jax=f, pytorch=g, arrays={"x": x})
    """
    declared = {"measure": measure, "cost": cost, "operations": operations}
    _check_processors(processors)
    all_settings = {**settings, "measurement.acceptNoise": True} if accept_noise else settings
    written = _written_script(
        functions, arrays, reference, canonical, declared, name, variants, precision, all_settings
    )
    with written as (script, run, platform_name):
        try:
            [directory] = reserve([run], Path(out) if out is not None else None)
        except OccupiedError:
            raise FileExistsError(f"{out} is not empty, and nothing is overwritten: give out= another name") from None
        with Signals() as signals, display(console(stderr=True)) as live_display:
            outcome = measure_run(
                run,
                platform_name,
                directory,
                signals=signals,
                display=live_display,
                script=script,
                processors=processors,
                environment=_import_paths(),
            )
    write_page(directory)
    if signals.received is not None:
        raise KeyboardInterrupt(f"what was measured is in {directory.path}")
    if not outcome.measured:
        raise RuntimeError("\n".join(line for case in outcome.cases for line in case.problems))
    return ComparedFunctions(outcome, directory.path)


def check(
    *,
    arrays: FunctionOrArrays,
    reference: Callable[..., Any] | None = None,
    canonical: Callable[..., Any] | None = None,
    measure: Mapping[str, Any] | Measure | Callable[..., Any] | None = None,
    cost: Mapping[str, Any] | Cost | Callable[..., Any] | None = None,
    operations: Mapping[str, Any] | Operations | Callable[..., Any] | None = None,
    variants: Sequence[str] = (),
    precision: PrecisionPolicy | None = None,
    settings: Mapping[str, object] = MappingProxyType({}),
    name: str = "checked",
    **functions: Callable[..., Any],
) -> CheckedFunctions:
    """Check in seconds that functions compute the same, as `accelbench check` does; time nothing, and store nothing.

    Args:
        arrays: Dictionary of NumPy arrays, or a function that draws them. All arguments are those of `compare`.
        reference: Function of the arrays in NumPy that returns the right result.
        canonical: Function of the outputs that returns them in the form in which they are compared.
        measure: How a call is measured. Only what it declares about random outputs, NaN and derivatives is used here.
        cost: The floating-point operations and bytes of a call.
        operations: The matrix products and convolutions that a call needs at least.
        variants: Functions and modes to check, the baseline first.
        precision: Type of the computation.
        settings: Other fields of a BenchmarkRun's spec, and parameters of `arrays`.
        name: Name of the workload.
        **functions: The functions to check, by their frameworks' names.

    Returns:
        The outcome of each check of each variant, which prints as a report.

    Raises:
        CannotBeSentError: A function or an array cannot be sent to another process.
        TypeError: An argument has a wrong type.
        ValueError: An argument has a wrong value, or this machine cannot run the functions.
        KeyboardInterrupt: The check was interrupted.
        RuntimeError: A case has no complete result.

    Example:
        >>> check(jax=f, pytorch=g, arrays={"x": x})
    """
    declared = {"measure": measure, "cost": cost, "operations": operations}
    written = _written_script(functions, arrays, reference, canonical, declared, name, variants, precision, settings)
    results: list[tuple[Result, tuple[LaunchRecord, ...]]] = []
    problems: list[str] = []
    with written as (script, run, platform_name), Signals() as signals:
        cases = check_cases(
            run,
            platform_name,
            script,
            signals=signals,
            on_event=lambda _event: None,
            on_line=lambda _line: None,
            environment=_import_paths(),
        )
        for case, runner_exit in cases:
            if runner_exit.result is not None and runner_exit.result.complete:
                results.append((runner_exit.result, tuple(read_launches(runner_exit.launches))))
            else:
                status = f"{case.name}: the runner ended with status {runner_exit.code} and no result"
                problems += [*runner_exit.problems, status, *runner_exit.tail]
    if signals.received is not None:
        raise KeyboardInterrupt("nothing more was checked")
    if problems:
        raise RuntimeError("\n".join(problems))
    return CheckedFunctions(tuple(results))


@contextlib.contextmanager
def _written_script(
    functions: Mapping[str, Callable[..., Any]],
    arrays: FunctionOrArrays,
    reference: Callable[..., Any] | None,
    canonical: Callable[..., Any] | None,
    declared: Mapping[str, Any],
    name: str,
    variants: Sequence[str],
    precision: PrecisionPolicy | None,
    settings: Mapping[str, object],
) -> Iterator[tuple[Path, BenchmarkRun, str]]:
    """Write the functions into a script that exists within the `with` block; return its path, its run and its platform.

    The arguments are those of `compare`, and the errors too; `declared` has `measure`, `cost` and `operations`.
    """
    _check_arguments(functions, arrays, reference)
    if canonical is not None and not callable(canonical):
        raise TypeError(f"canonical=... takes a function, not a {type(canonical).__name__}")
    _check_name(name)
    # A string is a single variant, although it is a sequence of letters too.
    uses = (variants,) if isinstance(variants, str) else tuple(variants)
    with tempfile.TemporaryDirectory(prefix="accelbench-compare-") as temporary:
        script = Path(temporary, f"{name}{SCRIPT_SUFFIX}")
        script.write_text(script_text(functions, arrays, reference, declared, canonical), encoding="utf-8")
        precision_setting = {} if precision is None else {"measurement.precision": precision}
        yield script, *_read_run(script, uses, {**settings, **precision_setting})


def _import_paths() -> dict[str, str]:
    """Return an environment in which launches find the same modules as the notebook."""
    return {"PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)}


def _check_arguments(
    functions: Mapping[str, Callable[..., Any]], arrays: FunctionOrArrays, reference: Callable[..., Any] | None
) -> None:
    """Raise TypeError or ValueError if an argument of `compare` is invalid.

    `functions` has the keyword arguments: functions to compare, such as `jax`, and their setups, such as `setup_jax`.
    """
    compared = {name for name in functions if frameworks.name_of(name) in frameworks.names()}  # such as `jax_scan`
    setups = {name for name in functions if name.startswith(SETUP_PREFIX)}
    unknown_keywords = functions.keys() - compared - setups
    if unknown_keywords:
        keyword = min(unknown_keywords)
        raise ValueError(f"{keyword}=...: {_describe_unknown_keyword(keyword)}")
    if not compared:
        raise ValueError("nothing to compare: give a function for each framework, as in jax=f, pytorch=g")
    if not callable(arrays) and not isinstance(arrays, Mapping):
        raise TypeError(
            f'arrays=... takes arrays by name, as in {{"x": x}}, or a function of a random generator that '
            f"draws them, not a {type(arrays).__name__}"
        )
    for name, function in _with_reference(functions, reference).items():
        if not callable(function):
            raise TypeError(f"{name}=... takes a function, not a {type(function).__name__}")
        _refuse_compiled(name, function)
        has_setup = not setups.isdisjoint(setup_names(name))
        # A setup need not take every array, and a function with a setup also takes what the setup returns.
        takes_exactly_the_arrays = name not in setups and not has_setup
        if isinstance(arrays, Mapping) and takes_exactly_the_arrays:
            _require_callable_with(name, function, arrays)
    setups_of_functions = {setup for program in compared for setup in setup_names(program)}
    setups_without_function = setups - setups_of_functions
    if setups_without_function:
        setup = min(setups_without_function)
        raise ValueError(f"{setup}=...: there is no function {setup.removeprefix(SETUP_PREFIX)}")


def _describe_unknown_keyword(name: str) -> str:
    """Return advice on a keyword of `compare` that is neither an option nor the name of a function to compare."""
    if path := SETTINGS.get(name.replace("_", "").lower()):  # such as time_limit
        return f'write settings={{"measurement.{path}": ...}}'
    options = [option for option in inspect.signature(compare).parameters if option != "functions"]
    if option := find_similar(name, options):
        return f"did you mean {option}?"
    return describe_unknown("framework", name, frameworks.names())


def _with_reference(
    functions: Mapping[str, Callable[..., Any]], reference: Callable[..., Any] | None
) -> dict[str, Callable[..., Any]]:
    """Return the functions and, if there is one, the reference under the name `reference`."""
    return dict(functions) if reference is None else {**functions, "reference": reference}


def _check_name(name: str) -> None:
    """Raise ValueError if `name` cannot be a script's name."""
    if not re.fullmatch(SCRIPT_NAME, f"{name}{SCRIPT_SUFFIX}"):
        raise ValueError(
            f'name="{name}": a name begins with a letter or a digit and has only these, dashes, dots and underscores'
        )


def _check_processors(processors: int | None) -> None:
    """Raise ValueError for fewer than one processor."""
    if processors is not None and processors < 1:
        raise ValueError(f"processors={processors}: at least 1")


def _read_run(script: Path, variants: Sequence[str], settings: Mapping[str, object]) -> tuple[BenchmarkRun, str]:
    """Return the run of a script and the name of its platform; raises ValueError if this machine cannot run it.

    `settings` has values by the path of a field of the spec, or by the name of a parameter.
    """
    assignments = [f"{path}={_format_yaml(value)}" for path, value in settings.items()]
    try:
        [run] = read_target(str(script), variants, assignments)
        platform_name = platform_of(run)
    except InvalidSpecError as error:
        raise ValueError("\n".join(map(str, error.problems))) from None
    except UsageError as error:
        raise ValueError(str(error)) from None
    if missing := missing_frameworks(run):
        raise ValueError("; ".join(missing.values()))
    return run, platform_name


def _require_callable_with(name: str, function: Callable[..., Any], arrays: Mapping[str, Any]) -> None:
    """Raise TypeError if the function does not accept the arrays."""
    try:
        choose_arguments(function, arrays)
    except InvalidWorkloadError as error:
        raise TypeError(f"{name}=...: {error}") from None


def script_text(
    functions: Mapping[str, Callable[..., Any]],
    arrays: FunctionOrArrays,
    reference: Callable[..., Any] | None = None,
    declared: Mapping[str, Any] = MappingProxyType({}),
    canonical: Callable[..., Any] | None = None,
) -> str:
    """Return the text of a script for `accelbench run`, in which the functions are pickled.

    `declared` has the arguments `measure`, `cost` and `operations` of `compare`, by these names. `canonical` is a
    function that brings outputs to one form if several forms are right.
    """
    paragraphs = [
        f'"""Sent by accelbench from Python {platform.python_version()}, which unpickles it."""\n',
        "from accelbench.catalogue.pickled import Pickled\n",
    ]
    for name, function in _with_reference(functions, reference).items():
        paragraphs += _define_pickled(name, function)
    if canonical is not None:
        paragraphs += _define_pickled("canonical", canonical)
    for name, declaration in declared.items():
        paragraphs += _define_declared(name, declaration)
    make_arrays = arrays if callable(arrays) else partial(return_arrays, _to_numpy(arrays))
    paragraphs += _define_pickled("arrays", make_arrays)
    return "\n".join(paragraphs)


def _define_declared(name: str, declaration: Any) -> Iterator[str]:
    """Yield the lines of the script that define `name`; none if the declaration is None. Raises ValueError."""
    if callable(declaration):
        yield from _define_pickled(name, declaration)
    elif declaration is not None:
        try:
            code = declarations.literal(name, declaration, source="this call")  # errors name the source
            yield f"{name} = {code}\n"
        except InvalidWorkloadError as error:
            raise ValueError(str(error)) from None


def return_arrays(arrays: Mapping[str, Any], rng: "Generator") -> Mapping[str, Any]:
    """Return `arrays`; the random generator, which every script's function `arrays` gets, is not used."""
    del rng
    return arrays


def _to_numpy(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arrays of any framework to NumPy; raises CannotBeSentError for a value that is none.

    Floats become float64, because each launch converts them to its own precision.
    """
    import numpy as np

    converted = {}
    for name, array in arrays.items():
        try:
            values = to_numbers(array)
        except NotNumbersError as error:
            raise CannotBeSentError(f'arrays["{name}"] is {error}') from error
        converted[name] = values.astype(np.float64) if values.dtype.kind == "f" else values
    return converted


def _define_pickled(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the function's source as a comment, then the line of the script that defines `name` as its pickle."""
    _refuse_compiled(name, function)
    content = _pickle(name, function)
    with contextlib.suppress(OSError, TypeError):  # no source: a partial, or a function typed into the interpreter
        source_lines = inspect.getsource(function).rstrip().splitlines()
        yield "".join(f"# {line}\n" for line in source_lines)
    parameters = format_parameters(signature_of(function))
    # The default of this argument is True: the parameters of a user's function have the names of the arrays.
    last_argument = "" if names_its_arrays(function) else ", names_its_arrays=False"
    yield f'{name} = Pickled("{name}", "{parameters}", "{base64.b64encode(content).decode()}"{last_argument})\n'


def _refuse_compiled(name: str, function: Callable[..., Any]) -> None:
    """Raise CannotBeSentError for a function compiled by jax.jit or torch.compile."""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    compiler = None
    # Types are compared by name: no framework is imported. JAX's own functions, such as jnp.square, are accepted.
    if type(function).__name__ == "PjitFunction" and package not in frameworks.packages():
        compiler = "jax.jit"
    elif hasattr(function, "_torchdynamo_orig_callable"):
        compiler = "torch.compile"
    if compiler:
        raise CannotBeSentError(
            f"{name} is already compiled by {compiler}; pass the function itself, and select the modes: "
            f'variants=["pytorch/compile", "jax/jit"]'
        )


def _pickle(name: str, function: Callable[..., Any]) -> bytes:
    """Pickle the function with cloudpickle; raises CannotBeSentError if pickling or unpickling fails."""
    try:
        content = pickled.dumps(function)
    except ModuleNotFoundError as error:
        if error.name != "cloudpickle":
            raise
        raise CannotBeSentError(f"accelbench.compare needs cloudpickle: {INSTALL}") from None
    except (TypeError, pickle.PicklingError, RecursionError, AttributeError, ValueError) as error:
        raise CannotBeSentError(
            f"{name} cannot be sent to a process of its own: {error}.\n{_advise_file(name)}"
        ) from error
    try:
        pickle.loads(content)  # noqa: S301 - what was just written
    except Exception as error:
        raise CannotBeSentError(
            f"{name} cannot be read in a process of its own: {type(error).__name__}: {error}.\n{_advise_file(name)}"
        ) from error
    if len(content) > MAXIMUM_BYTES:
        size = f"{len(content) / 2**20:,.0f} MiB"
        maximum_mebibytes = MAXIMUM_BYTES // 2**20
        raise CannotBeSentError(f"{name} takes {size}, and {maximum_mebibytes} are allowed.\n{_advise_file(name)}")
    return content


def _advise_file(name: str) -> str:
    """Advise to define the function in a file, which needs no pickling."""
    parameter, body = "x", "..."
    if name == "arrays":
        parameter, body = "rng", 'return {"x": rng.standard_normal((1000, 1000))}'
    return (
        f"Put it into a file: `accelbench init my_function` writes my_function.py, with a function\n"
        f"  def {name}({parameter}):\n      {body}\n"
        f"that creates what it needs or takes it from its arrays; then `accelbench run my_function.py`."
    )


def _format_yaml(value: object) -> str:
    """Return the value of a setting as YAML: `true` for True, and any other value as Python writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)
