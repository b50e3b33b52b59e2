"""Define `accelbench.compare`: measure functions of a notebook or a program as `accelbench run` measures a file.

The calling process may have both frameworks in memory, compiled and warm, so nothing is timed in it: cloudpickle writes
the functions into a script, and every launch is a fresh process that imports only its own framework.
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
LARGEST_BYTES = 32 * 1024 * 1024
"""Maximum size of a pickled function: every launch reads the script again. A function should draw larger arrays."""
PAGE_HEIGHT = 900
"""Height of the report in a notebook, in pixels."""
INSTALL = "pip install 'accelbench[notebook]'"


class CannotBeSentError(ValueError):
    """Report a function or an array that cannot be sent to another process, and what to write instead."""


@dataclass(frozen=True, repr=False)
class ComparedFunctions:
    """Hold the results of `compare`, and the directory that `accelbench report` reads.

    Printing it prints the report; a notebook shows it as a page.
    """

    outcome: RunOutcome
    directory: Path

    @property
    def results(self) -> tuple[Result, ...]:
        """Return one result for each case; a comparison without a sweep has one."""
        return tuple(result for result, _ in self.outcome.measured)

    @property
    def result(self) -> Result:
        """Return the first result."""
        return self.results[0]

    def __repr__(self) -> str:
        """Return the findings and the directory of the results."""
        sentences = (sentence for result in self.results for sentence in view.sentences(result))
        return "\n".join([*sentences, self._where()])

    def _where(self) -> str:
        """Return the last line of a report: the directory of the results."""
        return f"results: {self.directory}"

    def __str__(self) -> str:
        """Return the report as in a terminal."""
        paper = Console(width=100, color_system=None, markup=False, emoji=False)
        with paper.capture() as captured:
            paper.print(terminal.reports(self.outcome.measured))
        return captured.get() + self._where()

    def _repr_html_(self) -> str:
        """Return the page that `accelbench run` writes, in a frame; the terminal's report without a page."""
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
        arrays: NumPy arrays by name, or a function of a NumPy random generator that returns them. Functions take them
            by these names.
        reference: Function of the arrays in NumPy that returns the right result; by default the baseline's own program
            in float64 on the CPU.
        variants: Modes to compare, such as `jax/jit`, the baseline first; by default the first mode of each framework.
        settings: Fields of a BenchmarkRun's spec, such as `{"measurement.rounds.max": 20}`.
        accept_noise: True to keep rounds that other load disturbed; there is then no verdict.
        processors: Number of CPUs that each launch may use; by default all.
        name: Name of the workload.
        out: New directory for the results; by default a new one in `results`.
        **functions: A function for each framework, by the framework's name.

    Returns:
        The results, which print as a report.

    Raises:
        CannotBeSentError: A function or an array cannot be sent to another process.
        TypeError: An argument has a wrong type.
        ValueError: Such a run is not possible.
        FileExistsError: `out` is not empty.
        KeyboardInterrupt: It was interrupted; what was measured is stored.
        RuntimeError: There is no result.

    Example:
        >>> compare(jax=f, pytorch=g, arrays={"x": x})
    """
    _check_arguments(functions, arrays, reference)
    _check_options(name, processors)
    uses = (variants,) if isinstance(variants, str) else tuple(variants)
    with tempfile.TemporaryDirectory(prefix="accelbench-compare-") as temporary:
        script = Path(temporary, f"{name}{SCRIPT_SUFFIX}")
        script.write_text(script_text(functions, arrays, reference), encoding="utf-8")
        changes = {**settings, **({"measurement.acceptNoise": True} if accept_noise else {})}
        run, platform_name = _read_run(script, uses, changes)
        try:
            [directory] = reserve([run], Path(out) if out is not None else None)
        except OccupiedError:
            raise FileExistsError(f"{out} is not empty, and nothing is overwritten: give out= another name") from None
        with Signals() as signals, display(console(stderr=True)) as live_display:
            outcome = measure(
                run,
                platform_name,
                directory,
                signals=signals,
                display=live_display,
                script=script,
                processors=processors,
                environment={"PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path)},
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
    """Raise TypeError, ValueError or CannotBeSentError for functions or arrays that cannot be compared."""
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
    for name, function in {**functions, **({} if reference is None else {"reference": reference})}.items():
        if not callable(function):
            raise TypeError(f"compare({name}=...) takes a function, not a {type(function).__name__}")
        _refuse_compiled(name, function)
        if isinstance(arrays, Mapping):
            _refuse_other_arrays(name, function, arrays)


def _check_options(name: str, processors: int | None) -> None:
    """Raise ValueError for a name that no script can have, or for fewer than one processor."""
    if not FILE_NAME.fullmatch(f"{name}{SCRIPT_SUFFIX}"):
        raise ValueError(f'compare(name="{name}"): a name consists of lower-case letters, digits and underscores')
    if processors is not None and processors < 1:
        raise ValueError(f"compare(processors={processors}): at least 1")


def _read_run(script: Path, variants: Sequence[str], changes: Mapping[str, object]) -> tuple[BenchmarkRun, str]:
    """Return the run of a script and its platform; raises ValueError if it cannot run here."""
    try:
        [run] = read_target(str(script), variants, [f"{path}={_as_yaml(value)}" for path, value in changes.items()])
        platform_name = platform_of(run)
    except InvalidSpecError as error:
        raise ValueError("\n".join(map(str, error.problems))) from None
    except UsageError as error:
        raise ValueError(str(error)) from None
    if missing := missing_frameworks(run):
        raise ValueError("; ".join(missing.values()))
    return run, platform_name


def _refuse_other_arrays(name: str, function: Callable[..., Any], arrays: Mapping[str, Any]) -> None:
    """Raise TypeError or CannotBeSentError if the function cannot be called with these arrays by name."""
    signature = inspect.signature(function)
    for parameter in signature.parameters.values():
        _format_parameter(name, parameter)
    try:
        signature.bind(**arrays)
    except TypeError as error:
        raise TypeError(f"compare({name}=...) is given the arrays {', '.join(arrays)}: {error}") from None


def script_text(
    functions: Mapping[str, Callable[..., Any]], arrays: FunctionOrArrays, reference: Callable[..., Any] | None
) -> str:
    """Return a script for `accelbench run` with every function pickled, next to its source if there is one."""
    parts = dict(functions) | ({"reference": reference} if reference is not None else {})
    draw = arrays if callable(arrays) else partial(return_arrays, _to_numpy(arrays))
    text = [
        f'"""Sent by accelbench.compare from Python {platform.python_version()}, which unpickles it."""\n',
        "from accelbench.catalogue.pickled import Pickled\n",
        *(line for name, function in parts.items() for line in _define_pickled(name, function)),
        *_define_pickled("arrays", draw),
    ]
    return "\n".join(text)


def return_arrays(arrays: Mapping[str, Any], rng: "Generator") -> Mapping[str, Any]:
    """Return `arrays`, which the user passed to `compare`, and draw nothing from `rng`."""
    del rng
    return arrays


def _to_numpy(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Convert arrays of any framework to NumPy, floats to float64: variants get the requested precision."""
    import numpy as np

    converted = {}
    for name, array in arrays.items():
        detached = array.detach().cpu() if hasattr(array, "detach") else array
        # NumPy has no bfloat16; all other types are kept, including integers and complex numbers.
        bfloat16 = str(getattr(detached, "dtype", "")) == "torch.bfloat16"
        try:
            values = np.asarray(detached.float() if bfloat16 else detached)
        except ValueError as error:  # lists of several lengths
            raise CannotBeSentError(f'arrays["{name}"] is not an array: {error}') from error
        if values.dtype.kind in "OUSMm":
            raise CannotBeSentError(f'arrays["{name}"] is a {type(array).__name__}; it has to be an array of numbers')
        converted[name] = values.astype(np.float64) if values.dtype.kind not in "biuc" else values
    return converted


def _define_pickled(name: str, function: Callable[..., Any]) -> Iterator[str]:
    """Yield lines that define `name` as the pickled function; raises CannotBeSentError."""
    _refuse_compiled(name, function)
    content = _pickle(name, function)
    with contextlib.suppress(OSError, TypeError):  # a partial, or typed into a plain interpreter
        yield "".join(f"# {line}\n" for line in inspect.getsource(function).rstrip().splitlines())
    parameters = ", ".join(
        _format_parameter(name, parameter) for parameter in inspect.signature(function).parameters.values()
    )
    yield f'{name} = Pickled("{name}", "{parameters}", "{base64.b64encode(content).decode()}")\n'


def _format_parameter(name: str, parameter: inspect.Parameter) -> str:
    """Return the parameter as `Pickled` takes it, `x` or `x=...`; raises CannotBeSentError if it has no name."""
    if parameter.kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        raise CannotBeSentError(f"{name} takes {parameter}; arrays are given by name, as in lambda x: f(x)")
    return parameter.name if parameter.default is parameter.empty else f"{parameter.name}=..."


def _refuse_compiled(name: str, function: Callable[..., Any]) -> None:
    """Raise CannotBeSentError for a compiled function: the variant's mode decides how it is compiled."""
    # A framework's own functions, such as jax.numpy.sort, are compiled too, and are allowed.
    belongs_to_framework = str(getattr(function, "__module__", "")).partition(".")[0] in frameworks.packages()
    compiler = {"PjitFunction": "jax.jit"}.get(type(function).__name__) if not belongs_to_framework else None
    if compiler or hasattr(function, "_torchdynamo_orig_callable"):
        raise CannotBeSentError(
            f"{name} is already compiled by {compiler or 'torch.compile'}; pass the function itself, and select the "
            f'modes: compare(..., variants=["pytorch/compile", "jax/jit"])'
        )


def _pickle(name: str, function: Callable[..., Any]) -> bytes:
    """Return the function as cloudpickle writes it, at most `LARGEST_BYTES`; raises CannotBeSentError."""
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
    if len(content) > LARGEST_BYTES:
        size = f"{len(content) / 2**20:,.0f} MiB"
        raise CannotBeSentError(f"{name} takes {size}, and {LARGEST_BYTES // 2**20} are allowed.\n{_advise_file(name)}")
    return content


def _advise_file(name: str) -> str:
    """Describe how to write the function `name` into a file instead of sending it."""
    body = 'return {"x": rng.standard_normal((1000, 1000))}' if name == "arrays" else "..."
    parameter = "rng" if name == "arrays" else "x"
    return (
        f"Put it into a file: `accelbench init my_function` writes my_function.py, with a function\n"
        f"  def {name}({parameter}):\n      {body}\n"
        f"that makes what it needs itself or takes it from its arrays; then `accelbench run my_function.py`."
    )


def _as_yaml(value: object) -> str:
    """Format a setting's value as YAML reads it: `true`, not `True`."""
    return str(value).lower() if isinstance(value, bool) else str(value)
