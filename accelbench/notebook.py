"""Define `accelbench.compare`: measure functions of a notebook or a program as `accelbench run` measures a file.

Nothing is timed in the calling process, because it may have loaded both frameworks and compiled programs. Instead,
cloudpickle writes the functions into a script, and every launch is a new process that imports only one framework.
"""

import base64
import contextlib
import html
import inspect
import os
import pickle
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from accelbench import frameworks
from accelbench.api.case import SCRIPT_SUFFIX
from accelbench.api.result import Result
from accelbench.api.run import BenchmarkRun
from accelbench.local.device import missing_frameworks, platform_of
from accelbench.local.errors import InvalidSpecError, OccupiedError, UsageError
from accelbench.local.interrupt import Signals
from accelbench.local.manifests import FILE_NAME, read_target
from accelbench.local.run import RunOutcome, measure, reserve, write_page
from accelbench.problem import describe_unknown
from accelbench.report import terminal, view
from accelbench.report.live import display
from accelbench.terminal.console import console

if TYPE_CHECKING:
    from numpy.random import Generator

FunctionOrArrays = Callable[..., Mapping[str, Any]] | Mapping[str, Any]
MAXIMUM_BYTES = 32 * 1024 * 1024
"""Maximum size of a pickled function, because every launch reads the script. A function can draw larger arrays."""
PAGE_HEIGHT = 900
"""Height of the report in a notebook, in pixels."""
INSTALL = "pip install 'accelbench[notebook]'"


class CannotBeSentError(ValueError):
    """Report a function or an array that cannot be sent to another process, and what to write instead."""


@dataclass(frozen=True, repr=False)
class ComparedFunctions:
    """Hold the results of `compare`, and the directory that `accelbench report` reads.

    `print` shows them as the report of a terminal, a notebook as an HTML page.
    """

    outcome: RunOutcome
    directory: Path

    @property
    def results(self) -> tuple[Result, ...]:
        """Return the result of each case."""
        return tuple(result for result, _ in self.outcome.measured)

    @property
    def result(self) -> Result:
        """Return the first result."""
        return self.results[0]

    def __repr__(self) -> str:
        """Return the sentences of each result, and the directory of the results."""
        sentences = [sentence for result in self.results for sentence in view.sentences(result)]
        return "\n".join([*sentences, self._directory_line()])

    def _directory_line(self) -> str:
        return f"results: {self.directory}"

    def __str__(self) -> str:
        """Return the report as a terminal shows it, without colours."""
        plain_console = Console(width=100, color_system=None, markup=False, emoji=False)
        with plain_console.capture() as captured:
            plain_console.print(terminal.reports(self.outcome.measured))
        return captured.get() + self._directory_line()

    def _repr_html_(self) -> str:
        """Return `report.html` in a frame for a notebook."""
        page = self.directory / "report.html"
        if not page.exists():
            return f"<pre>{html.escape(str(self))}</pre>"
        text = html.escape(page.read_text(encoding="utf-8"), quote=True)
        return f'<iframe srcdoc="{text}" style="width: 100%; height: {PAGE_HEIGHT}px; border: 0"></iframe>'


def compare(
    *,
    arrays: FunctionOrArrays,
    reference: Callable[..., Any] | None = None,
    variants: Sequence[str] = (),
    settings: Mapping[str, object] = MappingProxyType({}),
    accept_noise: bool = False,
    processors: int | None = None,
    name: str = "compared",
    out: Path | str | None = None,
    **functions: Callable[..., Any],
) -> ComparedFunctions:
    """Measure which function is faster, and check that all compute the same.

    Args:
        arrays: Dictionary of NumPy arrays, or a function of a NumPy random generator that returns one. Each function
            has parameters with the names of these arrays.
        reference: Function of the arrays in NumPy that returns the right result; by default the baseline's function
            is run in float64 on the CPU.
        variants: Frameworks and modes to compare, such as `jax/jit`, the baseline first; by default the first mode of
            each framework.
        settings: Fields of a BenchmarkRun's spec, such as `{"measurement.rounds.max": 20}`.
        accept_noise: True to count rounds that other load disturbed; if there are any, there is no verdict.
        processors: Number of CPUs that each launch may use; by default all.
        name: Name of the workload.
        out: New directory for the results; by default a new one in `results`.
        **functions: A function for each framework, by the framework's name.

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
    _check_arguments(functions, arrays, reference)
    _check_options(name, processors)
    # A string is a single variant, although it is a sequence of letters too.
    uses = (variants,) if isinstance(variants, str) else tuple(variants)
    with tempfile.TemporaryDirectory(prefix="accelbench-compare-") as temporary:
        script = Path(temporary, f"{name}{SCRIPT_SUFFIX}")
        script.write_text(script_text(functions, arrays, reference), encoding="utf-8")
        all_settings = dict(settings)
        if accept_noise:
            all_settings["measurement.acceptNoise"] = True
        run, platform_name = _read_run(script, uses, all_settings)
        try:
            [directory] = reserve([run], Path(out) if out is not None else None)
        except OccupiedError:
            raise FileExistsError(f"{out} is not empty, and nothing is overwritten: give out= another name") from None
        # With these, launches find the same modules as the notebook.
        import_paths = [str(Path(entry).absolute()) for entry in sys.path]
        with Signals() as signals, display(console(stderr=True)) as live_display:
            outcome = measure(
                run,
                platform_name,
                directory,
                signals=signals,
                display=live_display,
                script=script,
                processors=processors,
                environment={"PYTHONPATH": os.pathsep.join(import_paths)},
            )
    write_page(directory)
    if signals.received is not None:
        raise KeyboardInterrupt(f"what was measured is in {directory.path}")
    if not outcome.measured:
        raise RuntimeError("\n".join(line for case in outcome.cases for line in case.trouble))
    return ComparedFunctions(outcome, directory.path)


def _check_arguments(
    functions: Mapping[str, Callable[..., Any]], arrays: FunctionOrArrays, reference: Callable[..., Any] | None
) -> None:
    """Raise an error for functions or arrays that cannot be compared."""
    for name in functions:
        if name not in frameworks.names():
            raise ValueError(f"compare({name}=...): {describe_unknown('framework', name, frameworks.names())}")
    if not functions:
        raise ValueError("nothing to compare: give a function for each framework, as in compare(jax=f, pytorch=g, ...)")
    if not callable(arrays) and not isinstance(arrays, Mapping):
        raise TypeError(
            f'compare(arrays=...) takes arrays by name, as in {{"x": x}}, or a function of a random generator that '
            f"draws them, not a {type(arrays).__name__}"
        )
    for name, function in _with_reference(functions, reference).items():
        if not callable(function):
            raise TypeError(f"compare({name}=...) takes a function, not a {type(function).__name__}")
        _refuse_compiled(name, function)
        if isinstance(arrays, Mapping):
            _require_callable_with(name, function, arrays)


def _with_reference(
    functions: Mapping[str, Callable[..., Any]], reference: Callable[..., Any] | None
) -> dict[str, Callable[..., Any]]:
    """Add the reference, if there is one, to the functions."""
    return dict(functions) if reference is None else {**functions, "reference": reference}


def _check_options(name: str, processors: int | None) -> None:
    """Raise ValueError if `name` or `processors` is invalid."""
    if not FILE_NAME.fullmatch(f"{name}{SCRIPT_SUFFIX}"):
        raise ValueError(f'compare(name="{name}"): a name consists of lower-case letters, digits and underscores')
    if processors is not None and processors < 1:
        raise ValueError(f"compare(processors={processors}): at least 1")


def _read_run(script: Path, variants: Sequence[str], settings: Mapping[str, object]) -> tuple[BenchmarkRun, str]:
    """Return a script's run and its platform; raises ValueError if it cannot run."""
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
    """Raise TypeError if the function does not accept the arrays by name."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        _format_parameter(name, parameter)  # raises CannotBeSentError
    try:
        signature.bind(**arrays)
    except TypeError as error:
        raise TypeError(f"compare({name}=...) is given the arrays {', '.join(arrays)}: {error}") from None


def script_text(
    functions: Mapping[str, Callable[..., Any]], arrays: FunctionOrArrays, reference: Callable[..., Any] | None
) -> str:
    """Return a script for `accelbench run` that contains the pickled functions."""
    paragraphs = [
        f'"""Sent by accelbench.compare from Python {platform.python_version()}, which unpickles it."""\n',
        "from accelbench.catalogue.pickled import Pickled\n",
    ]
    for name, function in _with_reference(functions, reference).items():
        paragraphs += _define_pickled(name, function)
    make_arrays = arrays if callable(arrays) else partial(return_arrays, _to_numpy(arrays))
    paragraphs += _define_pickled("arrays", make_arrays)
    return "\n".join(paragraphs)


def return_arrays(arrays: Mapping[str, Any], rng: "Generator") -> Mapping[str, Any]:
    """Return `arrays`; the random generator is not used."""
    del rng
    return arrays


def _to_numpy(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arrays of any framework to NumPy.

    Floats become float64, because each launch converts them to its own precision.
    """
    import numpy as np

    converted = {}
    for name, array in arrays.items():
        detached = array.detach().cpu() if hasattr(array, "detach") else array  # a tensor of PyTorch
        is_bfloat16 = str(getattr(detached, "dtype", "")) == "torch.bfloat16"  # NumPy has no such type
        try:
            values = np.asarray(detached.float() if is_bfloat16 else detached)
        except ValueError as error:  # lists of several lengths
            raise CannotBeSentError(f'arrays["{name}"] is not an array: {error}') from error
        if values.dtype.kind in "OUSMm":  # objects, texts, bytes, dates, durations
            raise CannotBeSentError(f'arrays["{name}"] is a {type(array).__name__}; it has to be an array of numbers')
        is_real_float = values.dtype.kind not in "biuc"  # booleans, integers, complex numbers; JAX's bfloat16 is "V"
        converted[name] = values.astype(np.float64) if is_real_float else values
    return converted


def _define_pickled(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield the function's source as a comment, then a line that unpickles it."""
    _refuse_compiled(name, function)
    content = _pickle(name, function)
    with contextlib.suppress(OSError, TypeError):  # no source: a partial, or a function typed into the interpreter
        source_lines = inspect.getsource(function).rstrip().splitlines()
        yield "".join(f"# {line}\n" for line in source_lines)
    signature = inspect.signature(function)
    parameters = ", ".join(_format_parameter(name, parameter) for parameter in signature.parameters.values())
    yield f'{name} = Pickled("{name}", "{parameters}", "{base64.b64encode(content).decode()}")\n'


def _format_parameter(name: str, parameter: inspect.Parameter) -> str:
    """Format a parameter for `Pickled`, as `x` or `x=...`."""
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise CannotBeSentError(f"{name} takes {parameter}; arrays are given by name, as in lambda x: f(x)")
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=..."


def _refuse_compiled(name: str, function: Callable[..., Any]) -> None:
    """Raise CannotBeSentError for a function compiled by jax.jit or torch.compile."""
    package = str(getattr(function, "__module__", "")).partition(".")[0]
    compiler = None
    # Types are compared by name, so that no framework is imported. JAX's own functions may be compiled.
    if type(function).__name__ == "PjitFunction" and package not in frameworks.packages():
        compiler = "jax.jit"
    elif hasattr(function, "_torchdynamo_orig_callable"):
        compiler = "torch.compile"
    if compiler:
        raise CannotBeSentError(
            f"{name} is already compiled by {compiler}; pass the function itself, and select the modes: "
            f'compare(..., variants=["pytorch/compile", "jax/jit"])'
        )


def _pickle(name: str, function: Callable[..., Any]) -> bytes:
    """Pickle the function with cloudpickle."""
    try:
        import cloudpickle
    except ModuleNotFoundError:
        raise CannotBeSentError(f"accelbench.compare needs cloudpickle: {INSTALL}") from None
    try:
        content: bytes = cloudpickle.dumps(function)
    except (TypeError, pickle.PicklingError, RecursionError, AttributeError, ValueError) as error:
        raise CannotBeSentError(
            f"{name} cannot be sent to a process of its own: {error}.\n{_advise_file(name)}"
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
        f"that makes what it needs itself or takes it from its arrays; then `accelbench run my_function.py`."
    )


def _format_yaml(value: object) -> str:
    """Format the value of a setting for YAML."""
    return str(value).lower() if isinstance(value, bool) else str(value)
