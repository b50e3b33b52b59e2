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
    """Report that this machine or framework lacks the device, the mode, the precision or the target."""


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
        """Return the `Device` fact of `count` devices.

        `backends` and `models` are the framework's names.
        """
        platforms = {self.platform if backend == self.backend else backend for backend in backends}
        model_names = {model or self.model for model in models}
        return Device(platform=",".join(sorted(platforms)), name=",".join(sorted(model_names)), count=count)


@dataclass
class Compilations:
    """Count what the framework has compiled so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Seconds of each step of compiling (JAX: trace, lower, backend; PyTorch: dynamo, backend). Steps never overlap."""
    causes: list[str] = field(default_factory=list)
    """One description for each compilation."""


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
        """Import what only a compiling variant needs; return True if anything was imported.

        The launch adds this time to the compile time.
        """
        return False

    @abstractmethod
    def initialise(self) -> None:
        """Apply the settings and initialise the device.

        Raises UnsupportedError if the device is not available.
        """
        ...

    @abstractmethod
    def put(self, arrays: Any) -> Any:
        """Copy a pytree of NumPy arrays to the device.

        Floats get the precision policy's dtype.
        """
        ...

    @abstractmethod
    def prepare(self, program: Program) -> Work:
        """Set up the program in the variant's mode, without compiling it.

        Raises UnsupportedError if the framework lacks the mode.
        """
        ...

    def compile_ahead(self, work: Work) -> None:  # noqa: B027 - there may be nothing to compile
        """Compile before the first call; do nothing by default."""

    def forbid_compiling(self) -> AbstractContextManager[None]:
        """Return a context in which compiling raises RecompiledError."""
        return nullcontext()

    @abstractmethod
    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Convert arrays to NumPy, and floats to float64."""
        ...

    @abstractmethod
    def device(self, value: Any) -> Device:
        """Describe the devices of the arrays in `value`."""
        ...

    @abstractmethod
    def precision(self) -> Precision:
        """Read back the settings that decide the precision."""
        ...

    @abstractmethod
    def gradients(self) -> GradMode:
        """Read back the autograd mode."""
        ...

    def drain(self) -> None:  # noqa: B027 - a CPU's calls return when they are done
        """Wait until the device has done all queued work; do nothing by default."""

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - an override may read it
        """Return whether all arrays in `value` are computed; None if unknown."""
        return None

    @abstractmethod
    def product(self, size: int) -> Callable[[], None]:
        """Return a call that multiplies two (size, size) matrices and waits."""
        ...

    @abstractmethod
    def triad(self, elements: int) -> Callable[[], None]:
        """Return a call that computes `a <- b + 0.5 a` on two vectors and waits."""
        ...

    def overwrite(self, size: int) -> Callable[[], None] | None:  # noqa: ARG002 - an override may read it
        """Return a call that writes `size` bytes of device memory, if there is one."""
        return None

    def out_of_memory(self, error: BaseException) -> bool:
        """Return True if the error means that memory ran out."""
        return isinstance(error, MemoryError)


class Accounting:
    """Report what a framework compiled, computes and occupies.

    By default, report nothing. Each override makes a metric or a validity check possible.
    """

    # Compilation.
    def compilations(self) -> Compilations:
        """Return what the framework has compiled so far."""
        return Compilations()

    def compile_cache(self) -> CompileCache | None:
        """Return the hits and misses of the compile cache on disk, if known."""
        return None

    def constants(self) -> list[str]:
        """Describe the arrays that the compiled program contains as constants, if known."""
        return []

    def executable_size(self) -> ExecutableSize | None:
        """Return the size of what was compiled ahead, if known."""
        return None

    # Operations of a call.
    def operations(self, work: Work) -> CountedOperations | None:  # noqa: ARG002 - an override may read it
        """Count the matrix products and convolutions of one call, if possible."""
        return None

    def arithmetic(self, work: Work) -> Arithmetic:  # noqa: ARG002 - an override may read it
        """Count the floating-point operations of one call, if possible."""
        return Arithmetic()

    def count_dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """Make the call, and count its operations by name, if possible."""
        call()
        return {}

    # Device and memory.
    def peak_memory_bytes(self) -> int | None:
        """Return the peak of device memory that arrays occupied, if known."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """Return the peak of device memory that the allocator reserved, if known."""
        return None

    def cache_bytes(self) -> int | None:
        """Return the size of the device's last-level cache, if known."""
        return None

    def device_id(self) -> str | None:
        """Return the UUID or index by which a monitor finds the device, if known."""
        return None

    def describe_emulation(self) -> str:
        """Describe how several devices are emulated on one; empty if they are real."""
        return ""

    # Host.
    def threads(self) -> int | None:
        """Return how many threads the framework uses, if known."""
        return None

    def host_to_device_ratios(self) -> list[float]:
        """Return host seconds over device seconds of each block so far, if known."""
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
        """Compile one call for the target.

        Raises UnsupportedError if the framework cannot compile it.
        """
        ...


class Adapter(Execution):
    """Connect one framework to a launch. `Execution` is required; accounting and targets are optional."""

    accounting: Accounting = Accounting()
    targets: Targets | None = None
    """None: the framework compiles only for the device that it runs on."""


class Span(NamedTuple):
    """Hold the start and the end of one part of a compilation, in seconds from any origin."""

    began: float
    ended: float
    part: str


def seconds_by_part(spans: Iterable[Span]) -> dict[str, float]:
    """Return the seconds of each part of compiling, such as `trace`.

    Nested time counts for the innermost span only.
    """
    seconds: dict[str, float] = {}
    open_spans: list[Span] = []  # spans that contain the current one, outermost first
    for span in sorted(spans, key=lambda span: (span.began, -span.ended)):
        while open_spans and open_spans[-1].ended <= span.began:
            open_spans.pop()
        seconds[span.part] = seconds.get(span.part, 0.0) + span.ended - span.began
        if open_spans:
            enclosing = open_spans[-1]
            seconds[enclosing.part] -= span.ended - span.began
        open_spans.append(span)
    return seconds


def count_cached_files(variable: str) -> int:
    """Count the files in the directory that an environment variable names."""
    directory = os.environ.get(variable)
    if not directory:
        return 0
    return sum(path.is_file() for path in Path(directory).rglob("*"))


def installed_version(*distributions: str) -> str:
    """Return the version of the first distribution that is installed."""
    for name in distributions:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def cast_complex(array: Array, precision: Policy) -> Array:
    """Cast complex numbers to the policy's complex type; keep other arrays unchanged."""
    if array.dtype.kind != "c":
        return array
    return array.astype("complex128" if precision == "float64" else "complex64")


def last_out(program: Program) -> Callable[[Any], Any]:
    """Return a function that picks the last step's out from the result of a call."""
    if program.inner == 1:
        return lambda out: out  # a call of one step returns no list
    return lambda outs: outs[-1]


def step_loop(program: Program) -> tuple[Any, Any]:
    """Return a function that runs `inner` steps, and the batches to pass to it."""
    if program.inner == 1:
        return program.step, program.batches[0]
    step, inner, batch_count = program.step, program.inner, len(program.batches)

    def call(state: Any, batches: Sequence[Any]) -> tuple[Any, list[Any]]:
        """Run the steps, each on the next batch."""
        outs = []
        for index in range(inner):
            state, out = step(state, batches[index % batch_count])
            outs.append(out)
        return state, outs

    return call, program.batches
