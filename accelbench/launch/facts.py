"""What a launch reads back of itself and of its machine: a model for each fact, and `Facts`, which holds them all.

A new fact is a model and a field here, and a line in the launch that reports it.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from annotated_types import Ge, Gt, Le, Len
from pydantic import (
    ConfigDict,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.types import NonNegativeInt, PositiveInt

from accelbench.catalogue.observations import MAXIMUM_CHARACTERS as MAXIMUM_OBSERVED_CHARACTERS
from accelbench.catalogue.observations import MAXIMUM_OWN, NAME, STANDARD
from accelbench.document import Document
from accelbench.launch.fact import NOT_REPORTED, Fact, FactWithFields, Unreadable, clip, kind
from accelbench.stats.summary import LaunchProtocol

Probe = Literal["watch", "synchronisation", "limits"]
"""What accelbench asks on its own account, without a step of the variant's: where it hangs or crashes, we are to blame.

Of the aside `synchronisation` only the products that leave nothing undone; it makes calls of the variant's too.
"""
PROBES: tuple[Probe, ...] = get_args(Probe)


PositiveFloat = Annotated[FiniteFloat, Gt(0)]


class Device(FactWithFields):
    """Where the output array lived after the run."""

    platform: str
    name: str
    count: NonNegativeInt = 1


class Threads(FactWithFields):
    """Threads asked for, processors the process may run on, and what the framework says it uses."""

    requested: int
    affinity: int
    framework: int | None = None


class Precision(FactWithFields):
    """What was set and read back: the policy, the arrays' type, how products of float32 are computed."""

    policy: str
    dtype: str
    matmul: dict[str, str | None] = {}
    """By the framework's own setting."""
    flush_denormal: bool | None = None


class ClockQuality(FactWithFields):
    """The clock that blocks were timed with."""

    resolution_seconds: FiniteFloat
    reading_seconds: FiniteFloat = 0.0
    """What reading it costs."""
    drift: FiniteFloat = 0.0
    """How far it ran ahead of the raw clock while blocks were timed, as a share."""


class CompileCache(FactWithFields):
    """What a framework counted of its compile cache on disk, up to the end of the first step."""

    hits: NonNegativeInt
    misses: NonNegativeInt
    before: NonNegativeInt = 0
    """Files that the cache held when the process began."""


class Throttling(FactWithFields):
    """What was taken from the launch's steady phase, by its control group and by the hypervisor."""

    periods: NonNegativeInt
    """Periods in which the group was held back by its quota."""
    seconds: FiniteFloat
    """How long it was held back, over all processors."""
    steal_seconds: FiniteFloat = 0.0
    """Time of its processors that the hypervisor gave to others."""
    pressure_seconds: FiniteFloat = 0.0
    """For which some task waited for a processor; a launch's own threads that wait for each other count too."""


class Process(FactWithFields):
    """Another process, and the processor time that it used in the launch's steady phase."""

    name: Annotated[str, StringConstraints(max_length=40)]
    pid: NonNegativeInt
    seconds: Annotated[FiniteFloat, Ge(0)]


class Neighbours(FactWithFields):
    """What other processes did on the launch's processors during its steady phase."""

    busy_seconds: FiniteFloat
    """Processor time that was spent, and not by the launch; below zero where the kernel's ticks missed some."""
    offered_seconds: PositiveFloat
    """The phase's wall seconds times the processors that the launch may run on."""
    processes: Annotated[list[Process], Len(0, 3)] = []
    """Those that used most, as far as they can be seen from where the launch runs."""


class OperationCounts(FactWithFields):
    """Matrix products and convolutions in one call."""

    products: NonNegativeInt
    convolutions: NonNegativeInt


class DeclaredOperations(FactWithFields):
    """What the workload declares that one call does, and what was found; None where it could not be counted."""

    declared: OperationCounts
    found: OperationCounts | None = None
    source: str | None = None
    """What they were counted in."""


class Arithmetic(FactWithFields):
    """Floating-point arithmetic of one call: operations, None for what could not be counted, and what they work on."""

    written: FiniteFloat | None = None
    """In the program as its author wrote it, what nobody uses included."""
    run: FiniteFloat | None = None
    """In what is left of it after all optimisation."""
    source: str = ""
    """What they were counted in."""
    types: list[str] = []
    """Of the arrays of floating-point numbers that it takes and makes, by name: `float32`."""
    recorded: bool = False
    """Autograd recorded operations."""


class ExecutableSize(FactWithFields):
    """What was compiled for a call; None for what its framework does not tell."""

    kernels_per_call: NonNegativeInt | None = None
    flops_per_call: NonNegativeInt | None = None
    """As it was written; of programs alone that are compiled for a target."""
    program_size: NonNegativeInt | None = None
    aliased_bytes: NonNegativeInt | None = None
    accessed_bytes: NonNegativeInt | None = None
    temporary_bytes: NonNegativeInt | None = None
    argument_bytes: NonNegativeInt | None = None
    output_bytes: NonNegativeInt | None = None
    peak_bytes: NonNegativeInt | None = None
    kernels: NonNegativeInt | None = None
    """Each once, as all that follows."""
    fusions: NonNegativeInt | None = None
    collectives: NonNegativeInt | None = None
    collective_bytes: NonNegativeInt | None = None
    all_reduces: NonNegativeInt | None = None
    all_reduce_bytes: NonNegativeInt | None = None
    all_gathers: NonNegativeInt | None = None
    all_gather_bytes: NonNegativeInt | None = None
    reduce_scatters: NonNegativeInt | None = None
    reduce_scatter_bytes: NonNegativeInt | None = None
    all_to_alls: NonNegativeInt | None = None
    all_to_all_bytes: NonNegativeInt | None = None
    collective_permutes: NonNegativeInt | None = None
    collective_permute_bytes: NonNegativeInt | None = None


class CompiledFor(FactWithFields):
    """What came of compiling for a target; where the program does not fit, `refused` says why in the compiler's words.

    `fits` is 1 or 0.
    """

    fits: Annotated[int, Ge(0), Le(1)]
    device_memory_bytes: NonNegativeInt | None = None
    refused: Annotated[str, StringConstraints(max_length=400)] = ""
    fused: Annotated[list[Annotated[str, StringConstraints(max_length=120)]], Len(0, 12)] = []
    """What the largest fusions are made of: `add, dot, tanh (4 kernels)`."""
    divided: bool = False
    """The program's arrays are divided over the target's devices; else each device holds and computes all of it."""
    dispatched: bool = False
    """Nothing was compiled: operations were dispatched one by one, on arrays that have no numbers."""


class DeviceReading(FactWithFields):
    """What a device's monitor says of the launch's steady phase; None where it does not say."""

    source: str
    """Who says so, for people."""
    seconds: PositiveFloat
    """Of the phase."""
    held_back_seconds: dict[str, FiniteFloat] | None = None
    """For which the clocks were below what was asked for, by why."""
    other_processes: NonNegativeInt | None = None
    """That computed on the same device."""
    clock_megahertz: list[NonNegativeInt] | None = None
    """The least and the most that was seen."""


class Limits(FactWithFields):
    """What the launch's own framework reached on its device: a large matrix product, a stream triad."""

    flops_per_second: PositiveFloat
    bytes_per_second: PositiveFloat


class WorkingSet(FactWithFields):
    """What a call works on, and the last-level cache of the device; None where that does not say."""

    bytes: NonNegativeInt
    cache_bytes: NonNegativeInt | None = None


EnergyScope = Literal["device", "processors"]
"""Who spent it: the device alone, or all processors of the machine, neighbours included."""


class Energy(FactWithFields):
    """What was spent in the launch's steady phase."""

    joules: PositiveFloat
    seconds: PositiveFloat
    """Of the phase."""
    scope: EnergyScope


class WatchedRun(FactWithFields):
    """A run of calls, apart from the blocks, and what it left undone."""

    seconds: PositiveFloat
    late_seconds: FiniteFloat
    """For which the process was still at work, or the device, after the clock had stopped."""


class Synchronisation(FactWithFields):
    """What was found when the clock had stopped."""

    runs: Annotated[list[WatchedRun], Len(1, 2)]
    """One as long as a block, and in the first rounds a longer one."""
    ready: bool | None = None
    """Whether all that the calls returned was there; None where the framework cannot say."""


class Replay(FactWithFields):
    """A block's calls, timed and not: how far apart the results are, as a share of their size; None: nothing finite."""

    calls: NonNegativeInt
    timed: FiniteFloat | None = None
    """Of the block's from those of untimed calls."""
    untimed: FiniteFloat | None = None
    """Of untimed calls from themselves."""


class Dependence(FactWithFields):
    """What a step did with inputs that it had not seen, once its blocks had been timed."""

    captured: list[str] = []
    """Arrays that it finds outside its arguments."""
    units: NonNegativeInt | None = None
    """After which its outputs on them were written; None: they were not."""
    unable: str | None = None
    """Why it was not given other inputs."""
    raised: str | None = None
    """What it raised on them."""
    seen: dict[str, NonNegativeInt] | None = None
    """Operations run, by name, in a block of one call on the inputs that the program was built from; None: not counted.
    """
    dispatched: dict[str, NonNegativeInt] = {}
    """In the first call on other inputs."""
    again: list[dict[str, NonNegativeInt]] = []
    """In one call more on the same, in two, in three and so on, each time from the beginning."""
    many: dict[str, NonNegativeInt] = {}
    """In a block of `many_calls` on those: as many as are timed, or a number drawn at random."""
    many_calls: NonNegativeInt = 0
    exported: list[dict[str, NonNegativeInt]] = []
    """On the way out after one call, and after several."""
    replay: Replay | None = None


GradMode = Literal["on", "off", "functional"]
"""Whether autograd records; `functional`: it differentiates functions, and records nothing."""


class Gradients(FactWithFields):
    """Whether the workload differentiates, and whether autograd was found to be recording."""

    wanted: bool
    found: GradMode


class Meddling(FactWithFields):
    """What the program changed of what measures it."""

    flags: list[str] = []
    """Environment variables that frameworks read, set by its file."""
    functions: list[str] = []
    """Of accelbench's own."""


class Idle(FactWithFields):
    """How much of the blocks' time the process computed or waited for its turn to; the rest, it waited for nothing."""

    seconds: PositiveFloat
    busy_seconds: Annotated[FiniteFloat, Ge(0)]


class HostOverDevice(FactWithFields):
    """A block's seconds by the host's clock over those by the device's events."""

    least: PositiveFloat
    """Of all blocks."""
    median: PositiveFloat | None = None


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ObservedName = Annotated[str, StringConstraints(pattern=rf"^{NAME.pattern}$")]
ObservedText = Annotated[str, StringConstraints(max_length=MAXIMUM_OBSERVED_CHARACTERS)]
ObservedWhole = Annotated[int, Ge(-(2**53)), Le(2**53)]
Observed = Annotated[
    dict[ObservedName, bool | ObservedWhole | FiniteFloat | ObservedText], Len(0, len(STANDARD) + MAXIMUM_OWN)
]


class Facts(Document):
    """Everything that a launch read back, each a value or why there is none."""

    model_config = ConfigDict(extra="ignore", strict=True)

    # What was asked for, and what it runs with.
    protocol: Fact[LaunchProtocol] = NOT_REPORTED
    """How it measures."""
    versions: Fact[dict[str, str]] = NOT_REPORTED
    """Of the framework and of libraries, by name."""
    device_settings: Fact[dict[str, str]] = NOT_REPORTED
    """What of the device stays as it is during a run."""
    emulated: Fact[str] = NOT_REPORTED
    """Why the devices are not what they seem, for people; empty: they are."""
    threads: Fact[Threads] = NOT_REPORTED
    precision: Fact[Precision] = NOT_REPORTED
    gradients: Fact[Gradients] = NOT_REPORTED
    meddling: Fact[Meddling] = NOT_REPORTED

    # The work.
    inputs_digest: Fact[Digest] = NOT_REPORTED
    unit: Fact[str] = NOT_REPORTED
    units_per_call: Fact[PositiveInt] = NOT_REPORTED
    units_per_step: Fact[PositiveInt] = NOT_REPORTED
    flops_per_unit: Fact[PositiveFloat] = NOT_REPORTED
    """By cost(), as the next one."""
    bytes_per_unit: Fact[PositiveFloat] = NOT_REPORTED
    working_set: Fact[WorkingSet] = NOT_REPORTED
    cold: Fact[bool] = NOT_REPORTED
    """Whether caches were emptied before each block, where the workload asks for it."""
    parity_units: Fact[NonNegativeInt] = NOT_REPORTED
    """Units after which the outputs were written that parity compares."""

    # What was compiled, and what it does.
    compile_cache: Fact[CompileCache] = NOT_REPORTED
    executable: Fact[ExecutableSize] = NOT_REPORTED
    compiled: Fact[CompiledFor] = NOT_REPORTED
    """Of a launch that compiles for a target, and runs nothing."""
    operations: Fact[DeclaredOperations] = NOT_REPORTED
    arithmetic: Fact[Arithmetic] = NOT_REPORTED
    recompilations: Fact[NonNegativeInt] = NOT_REPORTED
    recompilation_causes: Fact[list[str]] = NOT_REPORTED
    dependence: Fact[Dependence] = NOT_REPORTED
    observations: Fact[Observed] = NOT_REPORTED
    """By name, of a launch that observes and times nothing."""

    # The device and the machine while blocks were timed.
    device: Fact[Device] = NOT_REPORTED
    clock: Fact[ClockQuality] = NOT_REPORTED
    replanned: Fact[NonNegativeInt] = NOT_REPORTED
    """How often the plan of the blocks turned out too short."""
    idle: Fact[Idle] = NOT_REPORTED
    throttling: Fact[Throttling] = NOT_REPORTED
    neighbours: Fact[Neighbours] = NOT_REPORTED
    device_reading: Fact[DeviceReading] = NOT_REPORTED
    energy: Fact[Energy] = NOT_REPORTED
    host_over_device: Fact[HostOverDevice] = NOT_REPORTED
    synchronisation: Fact[Synchronisation] = NOT_REPORTED
    limits: Fact[Limits] = NOT_REPORTED
    peak_memory_bytes: Fact[PositiveInt] = NOT_REPORTED
    compile_peak_memory_bytes: Fact[PositiveInt] = NOT_REPORTED
    reserved_memory_bytes: Fact[PositiveInt] = NOT_REPORTED

    @classmethod
    def parse(cls, told: Mapping[str, Any], unanswered: Mapping[Probe, str] = MappingProxyType({})) -> Self:
        """What a launch has `told`, by name, less what probes left `unanswered`, and why."""
        # A launch that calls one of its facts unreadable could clear itself of blame.
        honest = {name: _CLAIMED if kind(value) == "unreadable" else value for name, value in told.items()}
        silent = {
            name: Unreadable(why=clip(unanswered[probe]), probe_failed=True)
            for name, probe in FOUND_BY.items()
            if probe in unanswered and told.get(name) is None
        }
        return cls.model_validate({**honest, **silent})

    @model_validator(mode="before")
    @classmethod
    def _name_the_missing(cls, told: Any) -> Any:
        if not isinstance(told, Mapping):
            return told
        given = {to_camel(name): value for name, value in told.items() if value is not None}
        missing = {to_camel(name) for name in cls.model_fields} - given.keys()
        return given | {name: Unreadable(why=f"the launch did not report {name}", reported=False) for name in missing}

    @model_serializer(mode="wrap")
    def _only_what_was_told(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        told: dict[str, Any] = serialise(self)
        return {name: value for name, value in told.items() if kind(value) == "value" or value["reported"]}


_CLAIMED = object()
FOUND_BY: Mapping[str, Probe] = {
    "throttling": "watch",
    "neighbours": "watch",
    "idle": "watch",
    "deviceReading": "watch",
    "energy": "watch",
    "synchronisation": "synchronisation",
    "limits": "limits",
}
"""The probe that a fact comes from."""
