"""What an adapter does for a launch: it knows one framework, and the launch knows none."""

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

NOT_PLACED = "A variant of your own runs as it is written: Program(..., placed=True)"
"""What to do where a variant's mode is none of the framework's."""


NO_TARGETS = "this framework compiles for no device but the one that it runs on"


class UnsupportedError(Exception):
    """The device, the mode or the precision is not to be had here."""


class RecompiledError(Exception):
    """The framework was about to compile where it must not; the message is its own reason."""


@dataclass(frozen=True)
class AdapterSettings:
    """What a launch asks of its framework."""

    mode: str
    options: Options
    platform: str
    """As accelbench calls it."""
    precision: Policy
    threads: int
    differentiates: bool
    """The step computes gradients; else it runs without autograd."""
    backend: str = "cpu"
    """As the framework calls it."""
    model: str = ""
    """Of the device, where the framework knows none."""

    def placed(self, backends: Iterable[str], models: Iterable[str], count: int) -> Device:
        """Where arrays live, from what the framework calls their devices."""
        platforms = {self.platform if backend == self.backend else backend for backend in backends}
        names = {model or self.model for model in models}
        return Device(platform=",".join(sorted(platforms)), name=",".join(sorted(names)), count=count)


@dataclass
class Compilations:
    """What the framework has compiled so far."""

    seconds: dict[str, float] = field(default_factory=dict)
    """By part (trace, lower, backend; dynamo, backend); the parts never overlap."""
    causes: list[str] = field(default_factory=list)
    """One for each compilation."""


class Counted(NamedTuple):
    """Operations of one call, and what they were counted in."""

    operations: Operations
    source: str


def cached_files(variable: str) -> int:
    """Files in the compile cache whose directory the environment variable names; 0 without either."""
    directory = os.environ.get(variable)
    return sum(path.is_file() for path in Path(directory).rglob("*")) if directory else 0


class Span(NamedTuple):
    """From when to when a part of compiling ran, in seconds from any origin."""

    began: float
    ended: float
    part: str


def seconds_by_part(spans: Iterable[Span]) -> dict[str, float]:
    """Seconds of each part, every moment counted once, for the innermost of the spans around it."""
    seconds: dict[str, float] = {}
    around: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.began, -span.ended)):
        while around and around[-1].ended <= span.began:
            around.pop()
        seconds[span.part] = seconds.get(span.part, 0.0) + span.ended - span.began
        if around:
            seconds[around[-1].part] -= span.ended - span.began
        around.append(span)
    return seconds


def installed(*names: str) -> str:
    """The version of the first of these distributions that is installed; empty where none is."""
    for name in names:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


class Adapter(ABC):
    """One framework, set up for one variant. The constructor has imported it; `initialise` comes next, once.

    What is not abstract is right for a framework that compiles nothing, and for a device that tells nothing.
    """

    float_bytes: int
    """Of a floating-point number in the policy's type."""

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Of the framework and what it brought along."""
        ...

    def import_compiler(self) -> bool:
        """Imports what only a compiling variant needs, so that it counts as compiling; False: there is no such."""
        return False

    @abstractmethod
    def initialise(self) -> None:
        """Applies the settings and wakes the device; raises UnsupportedError where either is not to be had."""
        ...

    @abstractmethod
    def put(self, arrays: Any) -> Any:
        """A pytree of NumPy arrays on the measured device, floats in the policy's type."""
        ...

    @abstractmethod
    def prepare(self, program: Program) -> Work:
        """The program in the variant's mode, compiled later; raises UnsupportedError where it cannot be."""
        ...

    def compile_ahead(self, work: Work) -> None:  # noqa: B027 - there may be nothing to compile
        """Compiles what can be compiled before the first call; that call finds it."""

    def compilations(self) -> Compilations:
        """Everything compiled until now, by the framework's own account."""
        return Compilations()

    def compile_cache(self) -> CompileCache | None:
        """What it counted of the compile cache on disk; None where nothing is compiled."""
        return None

    def forbid_compiling(self) -> AbstractContextManager[None]:
        """Raises RecompiledError inside, where the framework can tell beforehand; else counting has to do."""
        return nullcontext()

    def operations(self, work: Work) -> "Counted | None":  # noqa: ARG002 - who can count looks at it
        """What one call does, after all optimisation; may make a call. None where it cannot be told."""
        return None

    def arithmetic(self, work: Work) -> Arithmetic:  # noqa: ARG002 - who can count looks at it
        """Floating-point operations of one call, as it was written and as it runs."""
        return Arithmetic()

    @abstractmethod
    def dispatched(self, call: Callable[[], object]) -> dict[str, int]:
        """How often the framework runs each of its operations inside `call`, by its profiler."""
        ...

    def constants(self) -> list[str]:
        """Type and shape of each array that was compiled into the program; empty where there is no saying."""
        return []

    @abstractmethod
    def gradients(self) -> GradMode:
        """Whether operations are recorded for autograd, read back: `on`, `off`, or `functional`: only where asked."""
        ...

    def executable_size(self) -> ExecutableSize | None:
        """Of what was compiled ahead; None where the framework tells nothing of it."""
        return None

    def for_target(self, target: Target) -> AbstractContextManager[object]:  # noqa: ARG002 - who has to looks at it
        """Inside, programs are built and looked at for a target that is not there.

        Raises UnsupportedError where nothing can be said of it, before anything takes its time.
        """
        if type(self).compile_for is Adapter.compile_for:
            raise UnsupportedError(NO_TARGETS)
        return nullcontext()

    def abstractly(self, set_up: Callable[[], tuple[Program, Work]]) -> tuple[Program, Work]:
        """What `set_up` makes with `put` and `prepare`, of shapes and types alone: for `compile_for`.

        The default makes it of whole arrays.
        """
        return set_up()

    def compile_for(
        self,
        program: Program,  # noqa: ARG002 - who can compile looks at it
        work: Work,  # noqa: ARG002
        target: Target,  # noqa: ARG002
    ) -> tuple[CompiledFor, ExecutableSize]:
        """What comes of compiling a call for a target that is not there; it runs nothing.

        Raises UnsupportedError where it cannot be compiled.
        """
        raise UnsupportedError(NO_TARGETS)

    @abstractmethod
    def last(self, out: Any) -> Any:
        """The out of the last step, from what a call returned."""
        ...

    @abstractmethod
    def to_numpy(self, arrays: Mapping[str, Any]) -> dict[str, Array]:
        """Exported arrays in NumPy: floats as float64, integers as they are."""
        ...

    @abstractmethod
    def device(self, value: Any) -> Device:
        """Where `value`'s arrays live: platform, name and count of devices, asked of the arrays themselves."""
        ...

    @abstractmethod
    def precision(self) -> Precision:
        """The policy, the type, and the settings read back."""
        ...

    def threads(self) -> int | None:
        """How many threads the framework says it uses; None where it does not say."""
        return None

    def peak_memory_bytes(self) -> int | None:
        """The most that arrays took on the device at once; None on a CPU."""
        return None

    def reserved_memory_bytes(self) -> int | None:
        """The most that the allocator held of the device, for arrays or in reserve; None where it does not say."""
        return None

    def device_id(self) -> str | None:
        """The UUID or index of the device, as its monitor knows it; None: the first visible one."""
        return None

    def emulated(self) -> str:
        """Why the devices are not what they seem, for people; empty: they are."""
        return ""

    def host_over_device(self) -> list[float]:
        """Of every timed run so far, the host's seconds over those of the device's events; empty without such."""
        return []

    def drain(self) -> None:  # noqa: B027 - a processor's calls return when they are done
        """Returns when everything that this process gave the device is done, returned to anyone or not."""

    def ready(self, value: Any) -> bool | None:  # noqa: ARG002 - who can say looks at it
        """Whether all arrays in `value` have been computed; None where the framework cannot say without waiting."""
        return None

    def overwrite(self, size: int) -> Callable[[], None] | None:  # noqa: ARG002 - who can looks at it
        """A call that writes so many bytes of the device's memory, and returns when it has; None: there is none."""
        return None

    def cache_bytes(self) -> int | None:
        """Of the device's last cache before memory; None where it does not say."""
        return None

    @abstractmethod
    def product(self, size: int) -> Callable[[], None]:
        """A (size, size) product in the policy's type; the call returns when it is done."""
        ...

    @abstractmethod
    def triad(self, elements: int) -> Callable[[], None]:
        """`a <- b + 0.5 a` in the policy's type; the call returns when it is done."""
        ...

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether the error means that memory ran out."""
        return isinstance(error, MemoryError)


def parts_in(array: Array, precision: Policy) -> Array:
    """Complex numbers with parts of float64 or of float32, the narrowest that every framework has; others as given."""
    return array if array.dtype.kind != "c" else array.astype("complex128" if precision == "float64" else "complex64")


def step_loop(program: Program) -> tuple[Any, Any]:
    """One call as plain Python, and its batches: `inner` steps, every out returned; a single step stands alone."""
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
