"""Define what a launch needs from a framework: execution, accounting and, where it has any, targets."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from accelbench.api.case import Precision as Policy
from accelbench.frameworks import Options
from accelbench.launch.facts import Arithmetic, CompileCache, CompiledFor, Device, ExecutableSize, GradMode, Precision
from accelbench.targets import Target
from accelbench.workload import Array, Operations, Program
from accelbench_runner.frameworks.work import Work

NOT_PLACED = "To run a variant of your own as it is written, return Program(..., placed=True)"
"""Advice for a variant whose mode the framework lacks."""


class UnsupportedError(Exception):
    """Report that the device, the mode, the precision or the target is not available here."""


class RecompiledError(Exception):
    """Report that the framework was about to compile inside timed blocks; the message is the framework's reason."""


@dataclass(frozen=True)
class AdapterSettings:
    """Configure an adapter for one variant."""

    mode: str
    options: Options
    platform: str
    """accelbench's name of the platform."""
    precision: Policy
    threads: int
    differentiates: bool
    """True if the step computes gradients; otherwise autograd is off."""
    backend: str = "cpu"
    """The framework's name of the platform."""
    model: str = ""
    """Model of the device, for frameworks that cannot report it."""

    def describe_device(self, backends: Iterable[str], models: Iterable[str], count: int) -> Device:
        """Return the `Device` fact for arrays, given the backends and models that the framework reports for them."""
        platforms = {self.platform if backend == self.backend else backend for backend in backends}
        names = {model or self.model for model in models}
        return Device(platform=",".join(sorted(platforms)), name=",".join(sorted(names)), count=count)


@dataclass
class Compilations:
    """Count what the framework has compiled so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each part (trace, lower, backend; dynamo, backend); parts never overlap."""
    causes: list[str] = field(default_factory=list)
    """One entry per compilation."""


class CountedOperations(NamedTuple):
    """Hold the operations of one call and the source they were counted in."""

    operations: Operations
    source: str


class Execution(ABC):
    """Run programs of one framework, set up for one variant.

    The constructor has imported the framework; the launch calls `initialise` once, before anything else. Defaults suit
    a framework that compiles nothing and a processor whose calls return when they are done.
    """

    float_bytes: int
    """Bytes of one floating-point number in the policy's type."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Return the versions of the framework and of the libraries that it computes with."""
        ...

    def import_compiler(self) -> bool:
        """Import what only a compiling variant needs, to be timed as compilation; return False if there is nothing."""
        return False

    @abstractmethod
    def initialise(self) -> None:
        """Apply the settings and initialise the device; raise UnsupportedError if either is not available."""
        ...

    @abstractmethod
    def put(self, arrays: Any) -> Any:
        """Copy a pytree of NumPy arrays to the device, with floats in the policy's type."""
        ...

    @abstractmethod
    def prepare(self, program: Program) -> Work:
        """Set up the program in the variant's mode, to be compiled later; raise UnsupportedError if that fails."""
        ...

    def compile_ahead(self, work: Work) -> None:  # noqa: B027 - there may be nothing to compile
        """Compile what can be compiled before the first call, so that the call reuses it."""

    def forbid_compiling(self) -> AbstractContextManager[None]:
        """Return a context that raises RecompiledError, if the framework can detect a compilation in advance."""
        return nullcontext()

    @abstractmethod
    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert exported arrays to NumPy: floats to float64, integers unchanged."""
        ...

    @abstractmethod
    def device(self, value: Any) -> Device:
        """Read the platform, the model and the number of devices from the arrays in `value`."""
        ...

    @abstractmethod
    def precision(self) -> Precision:
        """Read back the floating-point type and the settings that decide the precision."""
        ...

    @abstractmethod
    def gradients(self) -> GradMode:
        """Read back the autograd mode; `functional` if the framework differentiates functions."""
        ...

    def drain(self) -> None:  # noqa: B027 - a processor's calls return when they are done
        """Wait until the device has finished all work of this process, including work whose result was dropped."""

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - an override may read it
        """Return True if all arrays in `value` are computed; None if the framework cannot find out without waiting."""
        return None

    @abstractmethod
    def product(self, size: int) -> Callable[[], None]:
        """Return a call that multiplies two (size, size) matrices in the policy's type and waits for the result."""
        ...

    @abstractmethod
    def triad(self, elements: int) -> Callable[[], None]:
        """Return a call that computes `a <- b + 0.5 a` in the policy's type and waits for the result."""
        ...

    def overwrite(self, size: int) -> Callable[[], None] | None:  # noqa: ARG002 - an override may read it
        """Return a call that writes `size` bytes of device memory and waits for it; None if not supported."""
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if the error means that memory ran out."""
        return isinstance(error, MemoryError)


class Accounting:
    """Report what a framework compiled, computes and occupies.

    By default, report nothing. Each override makes a number or a validity check possible.
    """

    # Compilation.
    def compilations(self) -> Compilations:
        """Return the compilations of the framework so far."""
        return Compilations()

    def compile_cache(self) -> CompileCache | None:
        """Return hits and misses of the compile cache on disk; None if nothing is compiled."""
        return None

    def constants(self) -> list[str]:
        """Return type and shape of each array that the compiled program contains as a constant."""
        return []

    def executable_size(self) -> ExecutableSize | None:
        """Return the size of what was compiled ahead; None if unknown."""
        return None

    # Operations of a call.
    def operations(self, work: Work) -> CountedOperations | None:  # noqa: ARG002 - an override may read it
        """Count products and convolutions of one call as optimised, by making one if need be; None if unknown."""
        return None

    def arithmetic(self, work: Work) -> Arithmetic:  # noqa: ARG002 - an override may read it
        """Count floating-point operations of one call, as written and as optimised."""
        return Arithmetic()

    def dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call and count how often the framework runs each of its operations, by its profiler."""
        call()
        return {}

    # Device and memory.
    def peak_memory_bytes(self) -> int | None:
        """Return the peak of device memory that arrays occupied; None on a CPU."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak of device memory that the allocator held, in use or in reserve; None if unknown."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the size of the device's last-level cache; None if unknown."""
        return None

    def device_id(self) -> str | None:
        """Return the device's UUID or index for its monitor; None for the first visible device."""
        return None

    def emulated(self) -> str:
        """Describe how several devices are emulated on one; empty if they are real."""
        return ""

    # Host.
    def threads(self) -> int | None:
        """Return how many threads the framework uses; None if unknown."""
        return None

    def host_to_device_ratios(self) -> list[float]:
        """Return host seconds over device seconds of each block so far whose events show more than 0 ms."""
        return []


class Targets(ABC):
    """Compile programs for devices that this machine does not have; nothing runs."""

    def for_target(self, target: Target) -> AbstractContextManager[object]:  # noqa: ARG002 - an override may read it
        """Return a context in which programs are built for the target.

        Raises UnsupportedError at once, before anything is initialised, if the framework does not support the target.
        """
        return nullcontext()

    def build_abstract(self, build: Callable[[], tuple[Program, Work]]) -> tuple[Program, Work]:
        """Run `build` so that `put` and `prepare` need only shapes and types. By default arrays are real."""
        return build()

    @abstractmethod
    def compile(self, program: Program, work: Work, target: Target) -> tuple[CompiledFor, ExecutableSize]:
        """Compile a call for the target; raise UnsupportedError if that is not possible."""
        ...


class Adapter(Execution):
    """Connect one framework to a launch. Its execution is required; accounting and targets are optional."""

    accounting: Accounting = Accounting()
    targets: Targets | None = None
    """None: the framework compiles only for the device that it runs on."""


class Span(NamedTuple):
    """Hold start and end of a part of compiling, in seconds from any origin."""

    began: float
    ended: float
    part: str


def seconds_by_part(spans: Iterable[Span]) -> dict[str, float]:
    """Sum the seconds of each part; a moment inside nested spans counts once, for the innermost span."""
    seconds: dict[str, float] = {}
    enclosing: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.began, -span.ended)):
        while enclosing and enclosing[-1].ended <= span.began:
            enclosing.pop()
        seconds[span.part] = seconds.get(span.part, 0.0) + span.ended - span.began
        if enclosing:
            seconds[enclosing[-1].part] -= span.ended - span.began
        enclosing.append(span)
    return seconds


def count_cached_files(variable: str) -> int:
    """Count files in the compile cache whose directory the environment variable names; 0 if it is not set."""
    directory = os.environ.get(variable)
    return sum(path.is_file() for path in Path(directory).rglob("*")) if directory else 0


def installed_version(*distributions: str) -> str:
    """Return the version of the first distribution that is installed; empty if none is."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def cast_complex(array: Array, precision: Policy) -> Array:
    """Cast complex numbers to complex128 for float64, else to complex64; return other arrays unchanged."""
    return array if array.dtype.kind != "c" else array.astype("complex128" if precision == "float64" else "complex64")


def last_out(program: Program) -> Callable[[Any], Any]:
    """Return a function that takes the last out from the outs of a call of `step_loop`."""
    return (lambda outs: outs[-1]) if program.inner > 1 else (lambda out: out)


def step_loop(program: Program) -> tuple[Any, Any]:
    """Return a Python function that runs the `inner` steps of a call, and its batches; for one step, the step."""
    if program.inner == 1:
        return program.step, program.batches[0]
    step, inner, period = program.step, program.inner, len(program.batches)

    def call(state: Any, batches: Sequence[Any]) -> tuple[Any, list[Any]]:
        outs = []
        for index in range(inner):
            state, out = step(state, batches[index % period])
            outs.append(out)
        return state, outs

    return call, program.batches
