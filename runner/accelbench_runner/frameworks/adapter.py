"""Define the interface of a framework for launches: execution, accounting and, if it has any, targets.

A target is a device that this machine lacks, for which a program is compiled and not run.
"""

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from accelbench.api.case import Precision as RoundedPrecision
from accelbench.api.case import PrecisionPolicy as Policy
from accelbench.catalogue.numbers import NotNumbersError, to_numbers
from accelbench.catalogue.workload_checks import RESULT, InvalidWorkloadError, numbers_by_name
from accelbench.frameworks import Options
from accelbench.launch.facts import Arithmetic, CompileCache, CompiledFor, Device, ExecutableSize, GradMode, Precision
from accelbench.targets import Target
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks.profiler import Profiler
from accelbench_runner.frameworks.work import Work

NOT_PLACED = "To run a variant of your own as it is written, return Program(..., placed=True)"
"""Advice for a variant whose mode the framework lacks."""


class UnsupportedError(Exception):
    """Report that this machine or framework lacks the device, the mode, the precision or the target."""


class AutogradNeededError(Exception):
    """Report that the step differentiates, and autograd is off."""


class RecompiledError(Exception):
    """Report that the framework was about to compile inside timed blocks; the message is the framework's reason."""


@dataclass(frozen=True)
class AdapterSettings:
    """Configure an adapter for one variant."""

    mode: str
    """How the variant runs a program, such as `jit`, `compile` or `eager`."""
    options: Options
    """Options of the mode."""
    platform: str
    """accelbench's name of the platform."""
    precision: Policy
    threads: int
    differentiates: bool
    """True if autograd records the step."""
    backend: str = "cpu"
    """The framework's name of the platform."""
    model: str = ""
    """Model of the device, for frameworks that cannot report it."""
    rounded: RoundedPrecision | None = None
    """Policy of the launches with which a run in float64 is compared: captured floats are rounded to its type first,
    and random numbers are drawn in it. None for a launch."""

    def describe_device(self, backends: Iterable[str], models: Iterable[str], count: int) -> Device:
        """Describe devices by accelbench's name of their platform, and by their model.

        Args:
            backends: The framework's names of the devices' platforms; `self.backend` is translated to `self.platform`.
            models: The framework's names of the devices' models; `self.model` replaces an empty name.
            count: Number of devices.
        """
        platform_of_backend = {self.backend: self.platform}
        platforms = {platform_of_backend.get(backend, backend) for backend in backends}
        model_names = {model or self.model for model in models}
        return Device(platform=",".join(sorted(platforms)), name=",".join(sorted(model_names)), count=count)


@dataclass
class Compilations:
    """Count what the framework has compiled so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each step of compiling (JAX: trace, lower, backend; PyTorch: dynamo, backend). Steps never overlap."""
    causes: list[str] = field(default_factory=list)
    """One description for each compilation."""

    def seconds_since(self, earlier: "Compilations") -> dict[str, float]:
        """Return the seconds that each step of compiling has taken since `earlier`, without steps that took none."""
        added = {step: seconds - earlier.seconds.get(step, 0.0) for step, seconds in self.seconds.items()}
        return {step: seconds for step, seconds in added.items() if seconds > 0}


class CountedOperations(NamedTuple):
    """Hold the operations of one call, and the program representation in which they were counted."""

    operations: Operations
    source: str


class Execution(ABC):
    """Run programs of one framework, set up for one variant.

    The constructor has imported the framework; the launch calls `initialise` once, before anything else. Defaults suit
    a framework that compiles nothing and a CPU, whose calls return when they are done.
    """

    float_bytes: int
    """Bytes of one floating-point number in the precision policy's dtype."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the framework and of its libraries."""
        ...

    def import_compiler(self) -> bool:
        """Import what only a variant that compiles needs; return True if anything was imported.

        The launch counts the seconds of this import as compile time.
        """
        return False

    @abstractmethod
    def initialise(self) -> None:
        """Apply the settings and initialise the device.

        Raises UnsupportedError if the device is not available.
        """
        ...

    def in_float64(self) -> "Adapter | None":
        """Return another, initialised adapter that computes in float64 and compiles as little as possible.

        Run no more programs with `self`: the returned adapter changes settings of the whole process. The default is
        None, for a framework that cannot change its precision within a process.
        """
        return None

    @abstractmethod
    def put(self, arrays: Any) -> Any:
        """Copy a pytree of NumPy arrays to the device, and return it as the framework's arrays.

        Floats get the precision policy's dtype.
        """
        ...

    def in_mode(self, function: Callable[..., Any], *, one_program: bool = False) -> Callable[..., Any]:  # noqa: ARG002
        """Return the function as the variant's mode runs it, for example compiled; by default unchanged.

        If `one_program`, a compiler that has to split the function raises an error instead.
        """
        return function

    def convert_captured(self, program: Program) -> Program:
        """Convert the floats that the program's step captures to the policy's type; return the program to prepare.

        A step captures the arrays and modules that it uses without taking them as arguments. `Work.fresh` undoes what
        calls change in them. By default, nothing is converted.
        """
        return program

    def restore_captured(self) -> None:  # noqa: B027 - by default nothing changes
        """Undo what calls have changed in the arrays and modules that the step captures; do nothing by default."""

    def changed_captured(self) -> list[str]:
        """Return the names of the arrays that the step captures and calls have changed; none by default."""
        return []

    @abstractmethod
    def prepare(self, program: Program) -> Work:
        """Return the call to time, with its inputs, in the variant's mode; compile nothing yet.

        Raises UnsupportedError if the framework lacks the mode.
        """
        ...

    def compile_ahead(self, work: Work) -> None:  # noqa: B027 - there may be nothing to compile
        """Compile `work.call` before its first call; do nothing by default."""

    def forbid_compiling(self) -> AbstractContextManager[None]:
        """Return a context in which compiling raises RecompiledError; by default, the framework compiles nothing."""
        return nullcontext()

    @abstractmethod
    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert the framework's arrays, by name, to NumPy; floats become float64.

        Raises NotNumbersError for a value that is no array of numbers.
        """
        ...

    @abstractmethod
    def device(self, value: Any) -> Device:
        """Describe the devices on which the arrays in the pytree `value` are."""
        ...

    @abstractmethod
    def precision(self) -> Precision:
        """Read back from the framework the settings that decide the precision of its computations."""
        ...

    @abstractmethod
    def gradients(self) -> GradMode:
        """Read back from the framework whether autograd is on."""
        ...

    def drain(self) -> None:  # noqa: B027 - a CPU's calls return when they are done
        """Wait until the device has finished all queued work; do nothing by default."""

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - an override may read it
        """Return True if all arrays in `value` are computed, False if not, and None if that is unknown.

        The launch asks this right after a call, to find out whether the call returns before its work is done.
        """
        return None

    # The launch runs the next three operations besides the program, to measure or prepare the device. The arrays of
    # `product` and `triad` have the precision policy's dtype, and are made before the function is returned.
    @abstractmethod
    def product(self, size: int) -> Callable[[], None]:
        """Return a function that multiplies two (size, size) matrices and waits for the result.

        The launch measures the rate of such products, and compares with them the work that a call leaves unfinished.
        """
        ...

    @abstractmethod
    def triad(self, elements: int) -> Callable[[], None]:
        """Return a function that computes `a <- b + 0.5 a` on two vectors and waits for the result.

        The launch measures the memory bandwidth with it. With the factor 0.5, repeated calls converge to 2 b and never
        overflow.
        """
        ...

    def overwrite(self, size: int) -> Callable[[], None] | None:  # noqa: ARG002 - an override may read it
        """Return a function that writes `size` bytes of device memory; None, the default, if that is impossible.

        The launch calls it to evict earlier data from the device's cache.
        """
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if the error means that memory ran out."""
        return isinstance(error, MemoryError)

    def advise(self, error: BaseException) -> str:  # noqa: ARG002 - an override may read it
        """Return advice for the author of a program that raised `error`, or an empty string if there is none."""
        return ""

    def needs_gradients(self, error: BaseException) -> bool:
        """Return True if the error means that the step computes gradients while autograd is off."""
        return isinstance(error, AutogradNeededError)

    def autograd_required(self) -> AbstractContextManager[None]:
        """Return a context that raises AutogradNeededError if code in it differentiates while autograd is off."""
        return nullcontext()


DECIDING_LOOP = "its numbers decide on a loop or a branch, so that it may stop at a tolerance"
NARROW_NUMBERS = "it computes with numbers that were rounded to {}"
"""Values of `Arithmetic.accuracy_limit`; `{}` is for a type."""


ROUNDED_BITS = 16
"""Maximum significant bits of a fraction that is exact on purpose, such as 0.375. A float64 that was not rounded, such
as 0.1, fits into float32 by chance once in half a billion times."""


def is_rounded_to_float32(number: float) -> bool:
    """Return True if the number was probably rounded to float32.

    It was if it is a fraction with more than `ROUNDED_BITS` significant bits, and float32 can hold it exactly.
    """
    if not math.isfinite(number) or number == round(number):
        return False
    mantissa, _ = math.frexp(number)
    # A float32 has 24 significant bits.
    return (mantissa * 2**24).is_integer() and not (mantissa * 2**ROUNDED_BITS).is_integer()


def shares_by_type(counts: Mapping[str, float]) -> dict[str, float]:
    """Return each type's share of the total, from the counts of numbers by type, such as `float32`; sort by type."""
    total = sum(counts.values()) or 1  # without counts, do not divide by zero
    return {dtype: counts[dtype] / total for dtype in sorted(counts)}


class Accounting:
    """Report a framework's compilations, operations and use of memory.

    By default, report nothing. Each override makes a metric or a validity check possible.
    """

    # Compilation.
    def compilations(self) -> Compilations:
        """Return the seconds and causes of the framework's compilations so far."""
        return Compilations()

    def compile_cache(self) -> CompileCache | None:
        """Return the hits and misses of the compile cache on disk; None if unknown."""
        return None

    def constants(self) -> list[str]:
        """Describe the arrays that the compiled program contains as constants; by default none."""
        return []

    def executable_size(self) -> ExecutableSize | None:
        """Return the sizes of the program that `compile_ahead` has compiled; None if unknown."""
        return None

    # Operations of a call.
    def operations(self, work: Work) -> CountedOperations | None:  # noqa: ARG002 - an override may read it
        """Count the matrix products and convolutions of one call; None if that is impossible."""
        return None

    def arithmetic(self, work: Work) -> Arithmetic:  # noqa: ARG002 - an override may read it
        """Count the floating-point operations of one call; the fields of the result are None if unknown."""
        return Arithmetic()

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call and count the operations that it runs, by name; by default, make it and return no counts."""
        call()
        return {}

    # Device and memory.
    def peak_memory_bytes(self) -> int | None:
        """Return the most bytes of device memory that arrays occupied at once; None if unknown."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """Return the most bytes of device memory that the framework's allocator reserved; None if unknown."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the bytes of the device's last-level cache; None if unknown."""
        return None

    def device_id(self) -> str | None:
        """Return the UUID or index by which a monitor finds the device; None if unknown."""
        return None

    def describe_emulation(self) -> str:
        """Describe how several devices are emulated on one; return an empty string if all devices are real."""
        return ""

    # Host.
    def threads(self) -> int | None:
        """Return how many threads the framework uses; None if unknown."""
        return None

    def host_to_device_ratios(self) -> list[float]:
        """Return host seconds divided by device seconds for each timed block so far; an empty list if unknown."""
        return []


class Targets(ABC):
    """Compile programs for devices that this machine does not have; nothing runs."""

    def for_target(self, target: Target) -> AbstractContextManager[object]:  # noqa: ARG002 - an override may read it
        """Return a context in which programs are built for the target.

        Raises UnsupportedError if the framework does not support the target.
        """
        return nullcontext()

    def build_abstract(self, build: Callable[[], tuple[Program, Work]]) -> tuple[Program, Work]:
        """Run `build` with shapes in place of arrays if a subclass can; this default keeps the real arrays."""
        return build()

    @abstractmethod
    def compile(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Compile `work.call` for the target; return whether it fits, and the sizes of the compiled program.

        Raises UnsupportedError if the framework cannot compile the call.
        """
        ...


class Adapter(Execution):
    """Connect one framework to a launch. `Execution` is required; accounting, targets and profiler are optional."""

    accounting: Accounting = Accounting()
    targets: Targets | None = None
    """None: the framework compiles only for the device that it runs on."""
    profiler: Profiler | None = None
    """None: the framework cannot show which operations take most of a call."""


class Span(NamedTuple):
    """Hold the start and the end of one part of a compilation, in seconds from any origin."""

    began: float
    ended: float
    part: str


def seconds_by_part(spans: Iterable[Span]) -> dict[str, float]:
    """Add up the seconds of each part of compiling, such as `trace`, from spans that may contain others.

    Time that several spans cover counts for the innermost of them only.
    """
    seconds: dict[str, float] = {}
    open_spans: list[Span] = []  # spans that contain the current span, outermost first
    # If spans begin together, the longest comes first, because it contains the others.
    for span in sorted(spans, key=lambda span: (span.began, -span.ended)):
        while open_spans and open_spans[-1].ended <= span.began:
            open_spans.pop()
        seconds[span.part] = seconds.get(span.part, 0.0) + span.ended - span.began
        if open_spans:
            enclosing = open_spans[-1]  # its seconds, counted before, include this span's
            seconds[enclosing.part] -= span.ended - span.began
        open_spans.append(span)
    return seconds


def count_cached_files(environment_variable: str) -> int:
    """Count the files of a compile cache, whose directory an environment variable names; 0 if it is not set."""
    directory = os.environ.get(environment_variable)
    if not directory:
        return 0
    return sum(path.is_file() for path in Path(directory).rglob("*"))


def installed_version(*distributions: str) -> str:
    """Return the version of the first of these distributions that is installed, or an empty string if none is."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def require_numbers(value: Any) -> Array:
    """Convert a value that a program passes to `tools.put` to a NumPy array.

    Raises InvalidWorkloadError if the value is not an array of numbers.
    """
    try:
        return to_numbers(value)
    except NotNumbersError as error:
        raise InvalidWorkloadError(f"tools.put() takes arrays of numbers, and was given {error.kind}") from error


def export_numbers(
    adapter: Execution, export: Callable[..., Mapping[str, Any]], exported: Mapping[str, Any]
) -> dict[str, Array]:
    """Convert `exported`, the values that the program's `export` returned by name, to NumPy arrays.

    Raises InvalidWorkloadError for a value that is not an array of numbers, such as a sparse array.
    """

    def convert(value: Any) -> Array:
        """Convert one value to a NumPy array of numbers."""
        converted = adapter.to_numpy({RESULT: value})  # `to_numpy` takes arrays by name, and any name will do
        return to_numbers(converted[RESULT])

    return numbers_by_name(export, exported, convert)


def cast_complex(array: Array, precision: Policy) -> Array:
    """Cast an array of complex numbers to the complex type of the precision policy; return others unchanged."""
    if array.dtype.kind != "c":  # NumPy's code of complex types
        return array
    return array.astype("complex128" if precision == "float64" else "complex64")


def last_out(program: Program) -> Callable[[Any], Any]:
    """Return a function that picks the last step's output from the outputs that a call returns.

    A call runs `program.inner` steps. If that is one, the call returns the step's output instead of a list.
    """
    if program.inner == 1:
        return lambda output: output  # not a list
    return lambda outputs: outputs[-1]


def inputs_of_calls(program: Program, work: Work) -> Sequence[Any]:
    """Return the inputs of the calls that make one pass over the program's batches.

    A call of one step takes one batch. A call of several steps takes all batches, so the pass is a single call.
    """
    return program.batches if program.inner == 1 else (work.batches,)


def step_loop(program: Program) -> tuple[Any, Any]:
    """Return the function to time, which runs `program.inner` steps, and what to pass as its second argument.

    The second argument is the first batch if a call is a single step; otherwise it is the list of all batches, of which
    each step takes the next.
    """
    if program.inner == 1:
        return program.step, program.batches[0]
    step, inner, batch_count = program.step, program.inner, len(program.batches)

    def call(state: Any, batches: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Run the steps, each on the next batch; return the final state, and the output of each step."""
        outs = []
        for index in range(inner):
            state, out = step(state, batches[index % batch_count])
            outs.append(out)
        return state, outs

    return call, program.batches
