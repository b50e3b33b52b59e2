"""The interface a workload implements: a computation with typed parameters, written once for each framework.

A workload is one file in `accelbench/workloads/` that reads like the mathematics. It never times, prints, chooses a
device, synchronises or sets a precision: the runner's adapters do that, once, for all workloads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from accelbench import frameworks

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.random import Generator

Array: TypeAlias = "ndarray[Any, Any]"
NamedArrays: TypeAlias = Mapping[str, Array]
ProtocolName = Literal["steady", "latency", "episode", "observe"]


class WorkloadParameters(BaseModel):
    """Base of a workload's `Parameters`: frozen, closed; every field has a default, bounds and a description."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Arrays:
    """A workload's data in NumPy, float64 or integer; the adapters cast floats to the precision policy's type.

    `state` is what a step consumes and returns; step i of a call is given `batches[i % len(batches)]`. One batch is the
    common case: an empty mapping for a step without input.
    """

    state: NamedArrays
    batches: Sequence[NamedArrays] = ({},)


def of_shape(shape: tuple[int, ...], dtype: str = "float64") -> Array:
    """Zeros of that shape in the memory of one, for `Workload.shapes`."""
    import numpy as np

    return np.broadcast_to(np.zeros((), dtype), shape)


@dataclass(frozen=True)
class Measure:
    """How a step is to be measured.

    `parity_units` is the least number of units that every variant computes before it is compared with the reference
    (a variant whose one call computes more is compared after that call). `non_finite` names why NaN or infinity is
    expected, for workloads that declare it. `cold`: every block begins with empty caches (a GPU's L2, a processor's
    last level), for steps whose data is never at hand; only the first call of a block meets them so. `differentiates`:
    the step computes gradients; the steps of all others run without autograd (`torch.no_grad()`).
    """

    protocol: ProtocolName = "steady"
    unit: str = "step"
    parity_units: int = 1
    non_finite: str | None = None
    cold: bool = False
    differentiates: bool = False


@dataclass(frozen=True)
class Cost:
    """Analytic cost of one unit: floating-point operations, and bytes that have to move to and from memory."""

    flops: float
    bytes: float


@dataclass(frozen=True)
class Operations:
    """Matrix products and convolutions, which compilers do not turn into anything else; a batch of them is one."""

    products: int = 0
    convolutions: int = 0

    def __add__(self, other: "Operations") -> "Operations":
        return Operations(self.products + other.products, self.convolutions + other.convolutions)

    def __mul__(self, times: int) -> "Operations":
        return Operations(self.products * times, self.convolutions * times)


SMALLEST_PRODUCT = 8
"""Compilers turn products of matrices with fewer rows or columns into sums, which nobody can count."""


@dataclass(frozen=True)
class Divided:
    """How a program's arrays are divided over devices, by the names of axes, one for each dimension.

    `("data", None)` divides the first dimension over the devices of that axis, and the second not at all. One such
    tuple stands for every array below it; `()` keeps them whole on each device. JAX's own PartitionSpec does as well,
    where several axes divide a dimension. The next state is divided as the state is.
    """

    state: Any = ()
    batches: Any = ()
    mesh: Mapping[str, int] = field(default_factory=lambda: {"data": 0})
    """Devices of each axis; of one axis at most 0, which is as many as the others leave."""


@dataclass(frozen=True)
class Program:
    """What a framework's author hands over; the adapter places, compiles, loops, synchronises and times it.

    `state` and the batches are the framework's own arrays, placed on the device. `step` is pure in what it returns:
    everything it computes is in `(state, out)`, or compilers will drop it.
    """

    state: Any
    """A pytree; every block starts from a fresh copy of it, made outside the timed part."""
    step: Callable[[Any, Any], tuple[Any, Any]]
    """`(state, batch) -> (state, out)`."""
    batches: Sequence[Any] = ({},)
    inner: int = 1
    """Steps per call: jit and compile unroll them, scan scans, eager and op-by-op loop."""
    units: int = 1
    """Units of work inside one step, e.g. 10,000 epochs in a step that scans a whole training."""
    placed: bool = False
    """The author has placed jit or compile; the adapter calls `step` as it is."""
    donate: bool = False
    """The call may reuse the memory of the state it is given."""
    export: Callable[[Any, Any], Mapping[str, Any]] = field(default=lambda state, _out: dict(state))
    """`(state, out of the last step) -> {name: array}`, compared with the reference."""
    divided: Divided | None = None
    """How arrays are divided over several devices; None: each device holds and computes all of it."""
    observe: Callable[[Sequence[Any]], Mapping[str, Any]] = field(default=lambda _outs: {})
    """Protocol `observe`: `(out of each call, in NumPy; None where it raised) -> {name: value}`, the names of
    `Workload.observes`. A value is a number, a truth, a text, or a list of these."""


class Tools(Protocol):
    """What an adapter lends to a workload's program: placing arrays on the device in the policy's type."""

    def put(self, arrays: Any) -> Any:
        """A pytree of NumPy arrays as the framework's own, on the measured device, floats in the policy's type."""
        ...


ProgramBuilder = Callable[..., Program]
Builder = TypeVar("Builder", bound=Callable[..., Program])


@dataclass(frozen=True)
class VariantKind:
    """A variant that a workload offers: its framework, its mode, and the method that builds its program."""

    use: str
    framework: str
    mode: str
    method: str
    summary: str = ""

    @property
    def plain(self) -> bool:
        """The runner places the mode around a plain step; else the author has written the variant by itself."""
        return self.method == self.framework


def variant(use: str) -> Callable[[Builder], Builder]:
    """Marks a `Workload` method as a variant of its own, e.g. `@variant("jax/jit-pieces")`; raises ValueError."""
    framework, _, mode = use.partition("/")
    try:
        frameworks.find(framework)
    except frameworks.UnknownFrameworkError as error:
        raise ValueError(f'@variant("{use}"): {error}') from None
    if not mode:
        raise ValueError(f'@variant("{use}") names no mode; such as @variant("{framework}/by-hand")')

    def mark(method: Builder) -> Builder:
        method.__dict__["accelbench_variant"] = use
        return method

    return mark


class Workload:
    """A computation with typed parameters, written once for each framework.

    Subclasses set `name`, `Parameters` and `modes`, and implement `arrays` and the programs, and where they can
    `reference` and `cost`. Those whose protocol is `observe` need neither: they are not compared, and not timed.
    """

    name: ClassVar[str]
    modes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "jax": ("jit", "op-by-op", "scan"),
        "pytorch": ("eager", "compile"),
    }
    """The modes in which plain programs make sense, by framework. Each is written in the method of that name."""
    observes: ClassVar[Mapping[str, str]] = {}
    """What `Program.observe` returns, each with its meaning; beside what every launch observes."""
    moves_once: ClassVar[bool] = False
    """Every byte that `cost` counts moves once in a unit, so that half of them at least are there at once."""
    written: ClassVar[bool] = True
    """Somebody wrote the class; False: it is made of functions, and complete by construction."""
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Modules that a framework's programs import beside the framework itself; a launch imports them with it."""

    class Parameters(WorkloadParameters):
        """No parameters."""

    def measure(self, parameters: Any) -> Measure:
        """How a step is measured; the default is a steady step, compared with the reference after one."""
        del parameters
        return Measure()

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """State and batches in NumPy, the same bits for every variant, drawn from `rng`."""
        raise NotImplementedError

    def shapes(self, parameters: Any) -> Arrays | None:
        """Arrays of the names, shapes and types of `arrays`, made by `of_shape`; None, the default: nobody says.

        What is compiled for a target needs no numbers: without this they are drawn, and held in the machine's memory.
        """
        del parameters
        return None

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        """What is right after `units` units, in float64; the same names as `Program.export`.

        Left out, it is what the baseline's own program computes in float64 on the CPU, and the certificate says so.
        """
        raise NotImplementedError

    def cost(self, parameters: Any, float_bytes: int) -> Cost | None:
        """Analytic cost of one unit, where a floating-point number takes `float_bytes`; None, the default: unknown.

        Without it no FLOP/s are shown, and `impossible-speed` is not checked.
        """
        del parameters, float_bytes
        return None

    def memory(self, parameters: Any, float_bytes: int) -> float:
        """The least bytes that are there at once, 0 where nobody knows; a case that cannot have them is refused.

        Where each byte moves once in a unit, it is half of what moves: what is read or what is written.
        """
        cost = self.cost(parameters, float_bytes) if self.moves_once else None
        return cost.bytes / 2 if cost else 0.0

    def operations(self, parameters: Any) -> Operations | None:
        """The least that one unit cannot do without; None, the default, where that cannot be said.

        What the compiled program does is held against it: compilers hoist, fold and drop work.
        """
        del parameters
        return None

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """The program in JAX; imports jax inside."""
        raise NotImplementedError

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """The program in PyTorch; imports torch inside."""
        raise NotImplementedError

    @classmethod
    def has_reference(cls) -> bool:
        """Whether the author says what is right; else the baseline's own program does."""
        return cls.reference is not Workload.reference

    @classmethod
    def has_shapes(cls) -> bool:
        """Whether it can be compiled for a target without its numbers."""
        return cls.shapes is not Workload.shapes

    @classmethod
    def usual(cls) -> tuple[str, ...]:
        """The variants to compare where nobody says which: of modes that it merely inherits, each framework's first."""
        inherited = "modes" not in vars(cls)
        first = {f"{framework}/{modes[0]}" for framework, modes in cls.modes.items() if modes}
        kinds = cls.variants().items()
        return tuple(use for use, kind in kinds if not (inherited and kind.plain) or use in first)

    @classmethod
    def variants(cls) -> dict[str, VariantKind]:
        """Every variant that the workload offers, by its `use` name, plain modes first."""
        kinds: dict[str, VariantKind] = {}
        for framework, modes in cls.modes.items():
            for mode in modes:
                use = f"{framework}/{mode}"
                kinds[use] = VariantKind(use=use, framework=framework, mode=mode, method=framework)
        for attribute, member in vars(cls).items():
            marked: str | None = getattr(member, "accelbench_variant", None)
            if marked is not None:
                framework, mode = marked.split("/", 1)
                summary = (member.__doc__ or "").strip().splitlines()
                kinds[marked] = VariantKind(
                    use=marked, framework=framework, mode=mode, method=attribute, summary=summary[0] if summary else ""
                )
        return kinds
