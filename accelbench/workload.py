"""Define a workload: a computation with typed parameters, written once for each framework.

A workload is one file in `accelbench/workloads/` that reads like the mathematics. It never times, prints, chooses a
device, synchronises or sets a precision: the runner's adapters do that for all workloads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict

from accelbench import frameworks
from accelbench.picture import Picture
from accelbench.problem import describe_unknown

if TYPE_CHECKING:
    from numpy import ndarray
    from numpy.random import Generator

Array: TypeAlias = "ndarray[Any, Any]"
"""NumPy array."""
NamedArrays: TypeAlias = Mapping[str, Array]
"""NumPy arrays by name."""
ProtocolName = Literal["steady", "latency", "arrivals", "episode", "observe"]
"""How steps are measured.

`steady`: blocks of many calls. `latency`: call by call. `arrivals`: requests that arrive at times of their own, which
only a run can ask for, as it knows the rate. `episode`: one ordered pass, from the first call to the last. `observe`: a
few calls whose results are recorded, without timing.
"""


class WorkloadParameters(BaseModel):
    """Define a workload's `Parameters`: frozen; unknown fields are refused.

    Every field needs a default, bounds and a description.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


@dataclass(frozen=True)
class Arrays:
    """Hold a workload's data in NumPy, float64 or integer.

    Adapters cast floats to the type of the precision policy.

    Attributes:
        state: Arrays that a step takes and returns.
        batches: Inputs of the steps; step i of a call gets `batches[i % len(batches)]`. One batch is usual: an empty
            mapping for a step without input.
    """

    state: NamedArrays
    batches: Sequence[NamedArrays] = ({},)


def of_shape(shape: tuple[int, ...], dtype: str = "float64") -> Array:
    """Return an array of zeros for `Workload.shapes`; all its elements share the memory of a single number.

    Args:
        shape: The array's shape.
        dtype: A NumPy type's name.

    Returns:
        A read-only array.
    """
    import numpy as np

    return np.broadcast_to(np.zeros((), dtype), shape)


@dataclass(frozen=True)
class Measure:
    """Describe how a step is to be measured.

    Attributes:
        protocol: How steps are measured; `steady` by default.
        unit: Name of a unit of work, in the singular, as `step` or `epoch`.
        parity_units: Minimum of units that every variant computes before it is compared with the reference. Below 2
            it counts as 2, except in the protocol `episode`: after one unit, a step that ignores its state is still
            right. A variant whose one call computes more is compared after that call.
        non_finite: Why NaN or infinity is expected in the outputs; None if it is not.
        cold: True if every block starts with empty caches (a GPU's L2, a processor's last level), for steps whose data
            is never cached; only the first call of a block then runs on empty caches.
        random: How outputs are compared that are random: by `moments` of their distribution, or only by `shapes`, which
            leaves parity untested; None if they are not random.
        differentiates: True if the step computes gradients. Other steps run without autograd (`torch.no_grad()`). If
            one raises an error without it, as `backward()` does, or uses `torch.func`, it is launched again with it.
    """

    protocol: ProtocolName = "steady"
    unit: str = "step"
    parity_units: int = 1
    non_finite: str | None = None
    cold: bool = False
    random: Literal["moments", "shapes"] | None = None
    differentiates: bool = False


@dataclass(frozen=True)
class Cost:
    """Hold the analytic cost of one unit of work.

    Attributes:
        flops: Floating-point operations.
        bytes: Bytes that must move to and from memory.
    """

    flops: float
    bytes: float


@dataclass(frozen=True)
class Operations:
    """Count matrix products and convolutions, which compilers keep as such; a batch of products counts as one."""

    products: int = 0
    convolutions: int = 0

    def __add__(self, other: "Operations") -> "Operations":
        return Operations(self.products + other.products, self.convolutions + other.convolutions)

    def __mul__(self, times: int) -> "Operations":
        return Operations(self.products * times, self.convolutions * times)


SMALLEST_PRODUCT = 8
"""Rows or columns below which compilers turn a matrix product into sums, which cannot be counted."""


@dataclass(frozen=True)
class Divided:
    """Describe how a program's arrays are sharded over devices: a tuple of axis names for each array.

    `("data", None)` splits the first dimension over the devices of the axis `data` and keeps the second whole. One
    tuple stands for every array below it in a tree; `()` replicates them. JAX's PartitionSpec is accepted too, if
    several axes split one dimension. The next state is sharded like the state.

    Attributes:
        state: Axes of the state's arrays.
        batches: Axes of the batches' arrays.
        mesh: Number of devices of each axis; one axis may be 0, which is all devices that the others leave.
    """

    state: Any = ()
    batches: Any = ()
    mesh: Mapping[str, int] = field(default_factory=lambda: {"data": 0})


@dataclass(frozen=True)
class Program:
    """Hold a framework's program; the adapter places, compiles, loops, synchronises and times it.

    `state` and the batches are the framework's own arrays on the device. `step` returns everything that it computes in
    `(state, out)`: compilers drop unused results.
    """

    state: Any
    """Pytree of arrays. Every block starts from a fresh copy, which is made outside the timed part."""
    step: Callable[[Any, Any], tuple[Any, Any]]
    """Function `(state, batch) -> (state, out)`."""
    batches: Sequence[Any] = ({},)
    """Inputs of the steps, in order."""
    inner: int = 1
    """Steps per call: `jit` and `compile` unroll them, `scan` scans, `eager` and `op-by-op` loop."""
    units: int = 1
    """Units of work in one step, e.g. 10,000 epochs in a step that scans a whole training."""
    placed: bool = False
    """True if the author has jitted or compiled the step, or wants neither; the adapter then calls it unchanged."""
    donate: bool = False
    """True if the call may reuse the memory of the state that it gets."""
    export: Callable[[Any, Any], Mapping[str, Any]] = field(default=lambda state, _out: dict(state))
    """Function `(state, out of the last step) -> {name: array}` for the comparison with the reference."""
    divided: Divided | None = None
    """Sharding over several devices; None if each device computes everything."""
    observe: Callable[[Sequence[Any]], Mapping[str, Any]] = field(default=lambda _outs: {})
    """Function for the protocol `observe`: `(out of each call in NumPy, None if it raised) -> {name: value}`.

    Names are those of `Workload.observes`. A value is a number, a bool, a text, or a list of these.
    """


class Tools(Protocol):
    """Provide an adapter's functions to a workload's program."""

    def put(self, arrays: Any) -> Any:
        """Place a pytree of NumPy arrays on the measured device.

        Args:
            arrays: A pytree of NumPy arrays, float64 or integer.

        Returns:
            The same pytree in the framework's own arrays, floats in the type of the precision policy.
        """
        ...

    def in_mode(self, function: Callable[..., Any], *, one_program: bool = False) -> Callable[..., Any]:
        """Return the function as the variant's mode runs it: compiled with the variant's options, or as it is.

        A step that calls the returned function needs `Program(..., placed=True)`, so that it is not compiled again.

        Args:
            function: Part of a step, such as the loss.
            one_program: True if a compiler that cannot compile the function as one program must raise an error.
        """
        ...


ProgramBuilder = Callable[..., Program]
Builder = TypeVar("Builder", bound=Callable[..., Program])


@dataclass(frozen=True)
class VariantKind:
    """Describe a variant that a workload offers.

    Attributes:
        use: `FRAMEWORK/MODE`.
        framework: The framework's name.
        mode: The mode's name.
        method: The workload's method that builds the program.
        summary: First line of the method's docstring; empty for a method that has the framework's name.
        plain: True if the mode is the framework's own; False for a name of a method marked `@variant`.
        in_mode: For a method marked `@variant`: the framework's mode that `Tools.in_mode` applies, or empty.
    """

    use: str
    framework: str
    mode: str
    method: str
    summary: str = ""
    plain: bool = True
    in_mode: str = ""

    @property
    def adapter_mode(self) -> str:
        """Return the mode to set the adapter to: the framework's own where there is one, or else the author's name."""
        return self.in_mode or self.mode


def variant(use: str, *, in_mode: str = "") -> Callable[[Builder], Builder]:
    """Return a decorator that marks a `Workload` method; the method then builds one variant.

    The method returns a program with `placed=True`, which the adapter calls unchanged. A program that is to run in the
    framework's own modes, such as `jit`, needs no decorator: it is a method such as `jax_scan`.

    Args:
        use: `FRAMEWORK/MODE`, where the mode is any name.
        in_mode: The framework's mode that `Tools.in_mode` applies; the variant then takes the options of that mode.

    Raises:
        ValueError: The framework or `in_mode` is unknown, or `use` has no mode.

    Example:
        @variant("jax/jit-pieces")
        def pieces(self, parameters, arrays, tools): ...
    """
    framework, _, mode = use.partition("/")
    try:
        modes = frameworks.find(framework).modes
    except frameworks.UnknownFrameworkError as error:
        raise ValueError(f'@variant("{use}"): {error}') from None
    if not mode:
        raise ValueError(f'@variant("{use}") names no mode; such as @variant("{framework}/by-hand")')
    if in_mode and in_mode not in modes:
        raise ValueError(f'@variant("{use}", in_mode="{in_mode}"): {describe_unknown("mode", in_mode, modes)}')

    def mark(method: Builder) -> Builder:
        """Mark the method, for `Workload.variants`."""
        # In `__dict__`, because for the type checker a callable has no attribute of this name.
        method.__dict__["accelbench_variant"] = (use, in_mode)
        return method

    return mark


class Workload:
    """Compute something with typed parameters, in each framework.

    Subclasses set `name`, `Parameters` and `modes`, implement `arrays` and the programs, and, if they can, `reference`
    and `cost`. Workloads of the protocol `observe` need neither: they are not compared and not timed.
    """

    name: ClassVar[str]
    modes: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "jax": ("jit", "op-by-op", "scan"),
        "pytorch": ("eager", "compile"),
    }
    """Modes in which plain programs make sense, by the method that builds the program.

    A method has the name of its framework, as `jax`, or begins with it: `jax_scan` is another program of JAX.
    """
    observes: ClassVar[Mapping[str, str]] = {}
    """Names in the result of `Program.observe`, with their meaning; every launch observes standard ones too."""
    moves_once: ClassVar[bool] = False
    """True if each unit reads or writes every byte that `cost` counts once, so that at least half of these bytes are in
    memory at once."""
    hand_written: ClassVar[bool] = True
    """False for workloads that accelbench makes of a module's functions; True for workloads that are classes."""
    libraries: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Modules to import besides the framework: by framework, or by the method of a single program. A launch imports
    them with the framework."""
    extra: ClassVar[str] = ""
    """accelbench's extra that installs `libraries`; empty if the frameworks' extras do."""

    class Parameters(WorkloadParameters):
        """Define no parameters."""

    def measure(self, parameters: Any) -> Measure:
        """Return how a step is measured; by default with the protocol `steady` and `step` as the unit of work."""
        del parameters
        return Measure()

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """Return the initial state and the input batches as NumPy arrays, from which every variant starts.

        Args:
            parameters: The case's `Parameters`.
            rng: Random generator; use no other source of randomness.
        """
        raise NotImplementedError

    def shapes(self, parameters: Any) -> Arrays | None:
        """Return arrays with the names, shapes and types of `arrays`, made by `of_shape`; None by default.

        Compiling for a target needs only shapes. Without them `arrays` is called, and its full arrays are in memory.
        """
        del parameters
        return None

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        """Return the correct outputs after `units` units of work.

        Args:
            parameters: The case's `Parameters`.
            arrays: What `arrays` returned, in float64.
            units: Units of work after which the outputs are compared. They can be more than `Measure.parity_units`,
                because a program is stopped only between calls, and a call may do several units.

        Returns:
            Arrays in float64, with the names of `Program.export`.

        If a workload has no `reference`, the baseline's program runs in float64 on the CPU instead, and the
        certificate reports this.
        """
        raise NotImplementedError

    def canonical(self, parameters: Any, arrays: Arrays, outputs: NamedArrays) -> NamedArrays:
        """Return outputs in the form in which they are compared; by default as they are.

        Override it for outputs that are right in several ways, such as eigenvectors, whose signs are free, or labels of
        clusters. It is applied to the outputs of every variant and of the reference alike, and is not timed.

        Args:
            parameters: The case's `Parameters`.
            arrays: What `arrays` returned, rounded to the requested precision, in float64 and read-only.
            outputs: Arrays with the names of `Program.export`, floats in float64; they may be changed in place.

        Returns:
            NumPy arrays by name. All correct outputs must give the same names, shapes and, within rounding, numbers.
        """
        del parameters, arrays
        return outputs

    def cost(self, parameters: Any, float_bytes: int) -> Cost | None:
        """Return the analytic cost of one unit; None, the default, if unknown.

        Args:
            parameters: The case's `Parameters`.
            float_bytes: Bytes of a floating-point number.

        If the cost is None, no FLOP/s are shown, and the check `impossible-speed` is untested.
        """
        del parameters, float_bytes
        return None

    def memory(self, parameters: Any, float_bytes: int) -> float:
        """Return a lower bound on the bytes that a launch needs in memory at once; 0 if unknown.

        A case that needs more than the available memory is refused. If `moves_once` says that each byte of `cost` moves
        once, the default is half of these bytes, because outputs may take the memory of inputs. Otherwise, or without
        a cost, it is 0.
        """
        if not self.moves_once:
            return 0.0
        cost = self.cost(parameters, float_bytes)
        return cost.bytes / 2 if cost else 0.0

    def operations(self, parameters: Any) -> Operations | None:
        """Return how many matrix products and convolutions one unit must run at least; None, the default, if unknown.

        If a compiled program runs fewer, the check `work-present` fails: the compiler hoisted, folded or dropped work.
        """
        del parameters
        return None

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Build the program in JAX; import jax inside."""
        raise NotImplementedError

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Build the program in PyTorch; import torch inside."""
        raise NotImplementedError

    def picture(self, parameters: Any, rng: "Generator") -> Picture | None:
        """Return a picture of what the case computes, for HTML reports; None, the default, for none.

        It is drawn from NumPy and closed forms, not from what variants computed, and has to take at most a few seconds:
        return None for sizes that take longer, before calling `self.arrays(parameters, rng)`.

        Args:
            parameters: The case's `Parameters`.
            rng: Random generator in the state in which `arrays` gets it.
        """
        del parameters, rng
        return None

    def setup_function(self, method: str) -> str:
        """Return the location of the function that prepares arguments of a program before anything is timed.

        Args:
            method: Name of the method that builds the program.

        Returns:
            The location, as errors show it; "", the default, if there is no such function.
        """
        del method
        return ""

    @classmethod
    def libraries_of(cls, kind: VariantKind) -> tuple[str, ...]:
        """Return the modules that programs of this kind import besides the framework."""
        names = dict.fromkeys((kind.framework, kind.method))  # often both are the same
        return tuple(library for name in names for library in cls.libraries.get(name, ()))

    @classmethod
    def has_reference(cls) -> bool:
        """Return True if the workload defines `reference`."""
        return cls.reference is not Workload.reference

    @classmethod
    def has_canonical(cls) -> bool:
        """Return True if the workload defines `canonical`, which brings outputs into a form that can be compared."""
        return cls.canonical is not Workload.canonical

    @classmethod
    def has_shapes(cls) -> bool:
        """Return True if the workload defines `shapes`."""
        return cls.shapes is not Workload.shapes

    @classmethod
    def default_uses(cls) -> tuple[str, ...]:
        """Return the variants that are compared by default: all of them, if the class sets `modes`.

        If `modes` is inherited, these are the first mode of each framework, and all methods marked `@variant`.
        """
        variants = cls.variants()
        if "modes" in vars(cls):
            return tuple(variants)
        first_modes = {f"{method}/{modes[0]}" for method, modes in cls.modes.items() if modes}
        # Only the variants of methods marked `@variant` are not plain.
        return tuple(use for use, kind in variants.items() if use in first_modes or not kind.plain)

    @classmethod
    def variants(cls) -> dict[str, VariantKind]:
        """Return every variant that the workload offers, by its use, such as `jax/jit`; plain modes come first."""
        kinds: dict[str, VariantKind] = {}
        for method, modes in cls.modes.items():
            framework = frameworks.name_of(method)
            # A method with the name of its framework needs no summary: the summary of the mode describes it.
            docstring = None
            if method != framework:
                # A class may lack a method that `modes` names; loading the workload then reports that.
                docstring = getattr(cls, method, cls).__doc__
            for mode in modes:
                use = f"{method}/{mode}"
                kinds[use] = VariantKind(use, framework, mode, method, _first_line(docstring))
        for method, member in vars(cls).items():
            mark: tuple[str, str] | None = getattr(member, "accelbench_variant", None)  # set by `@variant`
            if mark is None:
                continue
            use, in_mode = mark
            framework, mode = use.split("/", 1)
            kinds[use] = VariantKind(
                use, framework, mode, method, _first_line(member.__doc__), plain=False, in_mode=in_mode
            )
        return kinds


def _first_line(docstring: str | None) -> str:
    """Return the first line of a docstring; empty without one."""
    lines = (docstring or "").strip().splitlines()
    return lines[0] if lines else ""
