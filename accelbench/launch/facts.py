"""Define the facts that a launch reports about itself and its machine: a model for each, and `Facts` for all.

A call of the program does one or several units of work. The workload names the unit, such as a step or a token, and
times are divided by it.

To add a fact, add a model and a field here, and report it in the launch.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self, get_args

from annotated_types import Ge, Gt, Le, Len, Lt
from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.types import PositiveInt

from accelbench.api.operation_times import MAXIMUM_OPERATIONS
from accelbench.catalogue.observations import MAXIMUM_CHARACTERS as MAXIMUM_OBSERVED_CHARACTERS
from accelbench.catalogue.observations import MAXIMUM_OWN, NAME, STANDARD
from accelbench.document import Document
from accelbench.launch.fact import NOT_REPORTED, Fact, FactWithFields, Unreadable, clip, tag_of
from accelbench.stats.summary import LaunchProtocol

Probe = Literal["watch", "synchronisation", "limits", "formula"]
"""Accelbench's own probes in a launch: if one hangs or crashes, the variant has not failed.

`watch` reads the activity of machine and device, `limits` measures the device's limits, and `formula` runs the
variant's program in float64. `synchronisation` runs only matrix products: the calls of the variant in the activity of
that name are the variant's own work.
"""
PROBES: tuple[Probe, ...] = get_args(Probe)

MAXIMUM_OPERATION_CHARACTERS = 120
"""Maximum length of a profiled operation's name, and of its source."""
MAXIMUM_OUTPUTS = 64
"""Maximum number of exported arrays whose types and shapes a launch reports: a network exports each of its weights."""

PositiveFloat = Annotated[FiniteFloat, Gt(0)]
ShortDecimal = Annotated[FiniteFloat, Ge(0), Le(1e12), AfterValidator(lambda value: round(value, 15))]
"""Number that is short when it is written without an exponent, as in a result."""
Count = Annotated[int, Ge(0), Lt(2**63)]
"""Number of things or bytes. Libraries report an unknown number as 2**64 - 1, which is therefore refused."""


class Device(FactWithFields):
    """Describe the device that holds the output array after the run."""

    platform: str
    name: str
    count: Count = 1


class Threads(FactWithFields):
    """Hold numbers of threads and processors."""

    requested: int
    """Threads that the case requests."""
    affinity: int
    """Processors that the process may use."""
    framework: int | None = None
    """Threads that the framework reports; None if it reports none."""


class Precision(FactWithFields):
    """Hold the precision policy, and the settings that were read from the framework after the policy was set."""

    policy: str
    dtype: str
    """Floating-point type of the arrays."""
    matmul: dict[str, str | None] = {}
    """Value of each setting of the framework for products of float32 arrays."""
    flush_denormal: bool | None = None


class ClockQuality(FactWithFields):
    """Hold the quality of the clock that timed the blocks."""

    resolution_seconds: FiniteFloat
    reading_seconds: FiniteFloat = 0.0
    """Seconds that one reading takes."""
    drift: FiniteFloat = 0.0
    """How much faster it ran than the raw clock while blocks were timed: 0.01 is 1 %."""


class Lateness(FactWithFields):
    """Hold the load generator's delay: how late it began requests that did not have to wait for another request."""

    median_seconds: Annotated[FiniteFloat, Ge(0)]
    p99_seconds: Annotated[FiniteFloat, Ge(0)]
    """Seconds that 1 % of the requests exceeded."""


class CompileCache(FactWithFields):
    """Count the framework's hits and misses in its compile cache on disk, up to the end of the first step."""

    hits: Count
    misses: Count
    before: Count = 0
    """Files in the cache when the process started."""


class Throttling(FactWithFields):
    """Hold the processor time that the control group and the hypervisor took from the launch in its steady phase."""

    periods: Count
    """Periods in which the quota throttled the group."""
    seconds: FiniteFloat
    """Throttled seconds, over all processors."""
    steal_seconds: FiniteFloat = 0.0
    """Seconds of its processors that the hypervisor gave to others."""
    pressure_seconds: FiniteFloat = 0.0
    """Seconds in which some task waited for a processor, including threads of the launch that wait for each other."""


class Process(FactWithFields):
    """Describe another process and the processor time that it used in the launch's steady phase."""

    name: Annotated[str, StringConstraints(max_length=40)]
    pid: Count
    seconds: Annotated[FiniteFloat, Ge(0)]


class Neighbours(FactWithFields):
    """Hold the processor time that other processes used on the launch's processors during its steady phase."""

    busy_seconds: FiniteFloat
    """Processor seconds used by others; negative if the kernel's ticks missed some."""
    offered_seconds: PositiveFloat
    """Wall seconds of the phase, multiplied by the number of processors that the launch may use."""
    processes: Annotated[list[Process], Len(0, 3)] = []
    """Busiest processes that are visible from the launch's container."""


class OperationCounts(FactWithFields):
    """Count the matrix products and convolutions of one call."""

    products: Count
    convolutions: Count


class DeclaredOperations(FactWithFields):
    """Compare the operations that the workload declares for one call with those counted."""

    declared: OperationCounts
    counted: OperationCounts | None = Field(default=None, alias="found")
    """Counted operations; None if they cannot be counted."""
    source: str | None = None
    """Program representation in which they were counted."""


class Arithmetic(FactWithFields):
    """Count the floating-point operations of one call; None for what cannot be counted."""

    written: FiniteFloat | None = None
    """Operations in the program as its author wrote it, unused ones included."""
    unneeded: FiniteFloat = 0.0
    """Written operations of functions that are differentiated, if only the derivative is used."""
    dropped: FiniteFloat = 0.0
    """Other written operations that no output depends on."""
    repeated: FiniteFloat = 0.0
    """Written operations whose result another one computes too, or that are the same in each iteration of a loop."""
    constant: FiniteFloat = 0.0
    """Written operations that depend on no input."""
    run: FiniteFloat | None = None
    """Operations in the optimised program."""
    source: str = ""
    """Program representation in which they were counted."""
    types: dict[str, FiniteFloat] = {}
    """Share of each floating-point type, such as `float32`, in the numbers of the program's arrays."""
    accuracy_limit: str | None = None
    """Why the program may be less exact than its arrays' type: it has scalars of a narrower type, or a loop or branch
    depends on numbers, so that it may stop at a tolerance. Empty without such a reason, None if unknown."""
    operations_dispatched: Count | None = None
    """Operations that the framework dispatches one by one, without views; None if anything is compiled."""
    bytes_dispatched: Count | None = None
    """Bytes that these operations read and write."""
    operations_recorded: Count = 0
    """Operations that autograd recorded for a backward pass."""
    operations_differentiated: Count = 0
    """Operations whose derivatives backward passes computed."""


class ExecutableSize(FactWithFields):
    """Hold sizes of the program that was compiled for a call; None for what the framework does not report."""

    kernels_per_call: Count | None = None
    flops_per_call: Count | None = None
    """FLOPs as written, only for programs that are compiled for a target."""
    program_size: Count | None = None
    """Operations in the program that the compiler gets."""
    aliased_bytes: Count | None = None
    accessed_bytes: Count | None = None
    temporary_bytes: Count | None = None
    argument_bytes: Count | None = None
    output_bytes: Count | None = None
    peak_bytes: Count | None = None
    kernels: Count | None = None
    """Number of different kernels, like all counts below."""
    fusions: Count | None = None
    collectives: Count | None = None
    collective_bytes: Count | None = None
    all_reduces: Count | None = None
    all_reduce_bytes: Count | None = None
    all_gathers: Count | None = None
    all_gather_bytes: Count | None = None
    reduce_scatters: Count | None = None
    reduce_scatter_bytes: Count | None = None
    all_to_alls: Count | None = None
    all_to_all_bytes: Count | None = None
    collective_permutes: Count | None = None
    collective_permute_bytes: Count | None = None


class CompiledFor(FactWithFields):
    """Hold the outcome of compiling for a target; `fits` is 1 or 0.

    If the program does not fit, `refused` is the compiler's message.
    """

    fits: Annotated[int, Ge(0), Le(1)]
    device_memory_bytes: Count | None = None
    refused: Annotated[str, StringConstraints(max_length=1000)] = ""
    fused: Annotated[list[Annotated[str, StringConstraints(max_length=120)]], Len(0, 12)] = []
    """Contents of the largest fusions, as `add, dot, tanh (4 kernels)`."""
    divided: bool = False
    """True if the arrays are divided over the target's devices; otherwise each device computes everything."""
    dispatched: bool = False
    """True if nothing was compiled: operations were dispatched one by one, on arrays without numbers."""


class DeviceReading(FactWithFields):
    """Hold what the device's monitor reports for the launch's steady phase; None for what it does not report."""

    source: str
    """Name of the monitor, for people."""
    seconds: PositiveFloat
    """Duration of the phase."""
    held_back_seconds: dict[str, FiniteFloat] | None = None
    """Seconds with reduced clocks, by reason."""
    other_processes: Count | None = None
    """Number of other processes that computed on the device."""
    clock_megahertz: list[Count] | None = None
    """Lowest and highest clock that was read."""


class Limits(FactWithFields):
    """Hold the device's limits as the launch's framework reached them: in a large matrix product and a stream triad."""

    flops_per_second: PositiveFloat
    bytes_per_second: PositiveFloat


class WorkingSet(FactWithFields):
    """Hold the bytes that a call uses, and the size of the device's last-level cache, None if unknown."""

    bytes: Count
    cache_bytes: Count | None = None


EnergyScope = Literal["device", "processors"]
"""What the energy covers: the device, or all processors of the machine including other processes."""


class Energy(FactWithFields):
    """Hold the energy spent in the launch's steady phase."""

    joules: PositiveFloat
    seconds: PositiveFloat
    """Duration of the phase."""
    scope: EnergyScope


class WatchedRun(FactWithFields):
    """Hold a run of calls outside the blocks, and the work that continued after it."""

    seconds: PositiveFloat
    late_seconds: FiniteFloat
    """Seconds for which the process or the device was still busy after the clock stopped."""


class Synchronisation(FactWithFields):
    """Describe the work that continued after the clock stopped."""

    runs: Annotated[list[WatchedRun], Len(1, 2)]
    """One run as long as a block, and a longer one in the first rounds."""
    ready: bool | None = None
    """True if all outputs were ready; None if the framework cannot report it."""


class Replay(FactWithFields):
    """Hold relative differences between the results of timed and untimed calls; None if no result is finite."""

    calls: Count
    """Calls of the timed block; the untimed calls are as many."""
    timed: FiniteFloat | None = None
    """Difference between the block's results and the results of untimed calls."""
    untimed: FiniteFloat | None = None
    """Difference between the results of two repetitions of the untimed calls."""


class Dependence(FactWithFields):
    """Describe how a step behaved on inputs that it was not built from, after its blocks were timed."""

    captured: list[str] = []
    """Names of arrays that the step uses besides its arguments."""
    units: Count | None = None
    """Units of work after which the outputs on the other inputs were saved; None if none were saved."""
    unable: str | None = None
    """Why the step was not given other inputs; None if it was."""
    raised: str | None = None
    """Exception that the step raised on the other inputs; None if it raised none."""
    seen: dict[str, Count] | None = None
    """Number of each operation, by name, in a block of one call on the original inputs; None if not counted."""
    dispatched: dict[str, Count] = {}
    """The same for the first call on other inputs."""
    again: list[dict[str, Count]] = []
    """The same for repeated runs of one call, of two calls, of three and so on, each from the initial state.

    A slow call is repeated only in a run of two: the first entry is then `dispatched`.
    """
    many: dict[str, Count] = {}
    """The same for a block of `many_calls` calls: as many as are timed, or a random number."""
    many_calls: Count = 0
    exported: list[dict[str, Count]] = []
    """The same for the export of the outputs: after one call, then after several."""
    replay: Replay | None = None


class ProfiledOperation(FactWithFields):
    """Hold the time of one operation in a profiled call, as `accelbench.api.operation_times` defines it."""

    name: Annotated[str, StringConstraints(max_length=MAXIMUM_OPERATION_CHARACTERS)]
    source: Annotated[str, StringConstraints(max_length=MAXIMUM_OPERATION_CHARACTERS)] = ""
    merged: bool = False
    runs: Annotated[ShortDecimal, Gt(0)]
    seconds: ShortDecimal


class ProfiledCalls(FactWithFields):
    """Hold what the framework's profiler recorded of calls, in a launch that is not timed."""

    seconds_per_call: Annotated[ShortDecimal, Gt(0)]
    calls: PositiveInt
    busy_share: Annotated[ShortDecimal, Le(1)] | None = None
    operations: Annotated[list[ProfiledOperation], Len(max_length=MAXIMUM_OPERATIONS)] = []
    left_out: Count = 0


class FormulaRun(FactWithFields):
    """Describe how the program ran in float64, once and untimed, after its blocks were timed."""

    units: Count | None = None
    """Units of work after which its outputs were saved; None if none were saved."""
    types: list[str] = []
    """Floating-point types in the step."""
    accuracy_limit: str | None = None
    """Why it may be less exact than float64; see `Arithmetic.accuracy_limit`."""
    unable: str | None = None
    """Why the program did not run in float64; None if it did."""


GradMode = Literal["on", "off", "functional"]
"""State of autograd; `functional`: the framework differentiates functions and records nothing."""


class Gradients(FactWithFields):
    """Hold the state of autograd that the workload needs, and its actual state."""

    wanted: bool
    """True if the workload declares that its steps compute gradients."""
    actual: GradMode = Field(alias="found")
    needed: bool = False
    """True if the step raised an error without autograd, so that it was launched again with it."""


class Meddling(FactWithFields):
    """List what the program changed although its own measurement depends on it."""

    flags: list[str] = []
    """Environment variables that frameworks read, set by the program's file."""
    functions: list[str] = []
    """Functions of accelbench that it replaced."""


class ImportedPackage(FactWithFields):
    """Identify a package that a launch imported."""

    version: str = ""
    """The version that the package itself reports; empty if it reports none."""
    file: str = ""
    """File of its code; empty if it has none."""


class Idle(FactWithFields):
    """Hold how long the process was busy during its blocks."""

    seconds: PositiveFloat
    """Seconds of the blocks minus those in which threads waited for a CPU, at least `busy_seconds`."""
    busy_seconds: Annotated[FiniteFloat, Ge(0)]
    """CPU seconds of the process."""


class HostOverDevice(FactWithFields):
    """Hold the ratio of a block's seconds by the host's clock to its seconds between two events of the device."""

    least: PositiveFloat
    """Smallest ratio of all blocks."""
    median: PositiveFloat | None = None


Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
ObservedName = Annotated[str, StringConstraints(pattern=rf"^{NAME.pattern}$")]
ObservedText = Annotated[str, StringConstraints(max_length=MAXIMUM_OBSERVED_CHARACTERS)]
ObservedWhole = Annotated[int, Ge(-(2**53)), Le(2**53)]
Observed = Annotated[
    dict[ObservedName, bool | ObservedWhole | FiniteFloat | ObservedText], Len(0, len(STANDARD) + MAXIMUM_OWN)
]
"""Observations of a launch by name: accelbench's standard ones, and those that the workload adds."""


class Facts(Document):
    """Hold all facts of a launch: each is a value, or the reason why there is none."""

    model_config = ConfigDict(extra="ignore", strict=True)

    # Request and settings.
    protocol: Fact[LaunchProtocol] = NOT_REPORTED
    """Measuring protocol."""
    versions: Fact[dict[str, str]] = NOT_REPORTED
    """Versions of the framework and of libraries, by name."""
    imported: Fact[dict[str, ImportedPackage]] = NOT_REPORTED
    """NumPy and the framework's packages, as they were imported, by module."""
    device_settings: Fact[dict[str, str]] = NOT_REPORTED
    """Properties of the device that stay constant during a run."""
    emulated: Fact[str] = NOT_REPORTED
    """Why the devices are not real, for people; empty if they are."""
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
    """From the workload's `cost`, like `bytes_per_unit`."""
    bytes_per_unit: Fact[PositiveFloat] = NOT_REPORTED
    working_set: Fact[WorkingSet] = NOT_REPORTED
    cold: Fact[bool] = NOT_REPORTED
    """True if caches were flushed before each block, as the workload requests."""
    setup_function: Fact[str] = NOT_REPORTED
    """Location of the function that made the program's arguments before anything was timed; empty without one."""
    parity_units: Fact[Count] = NOT_REPORTED
    """Units after which the outputs for the parity check were written."""
    output_types: Fact[dict[str, str]] = NOT_REPORTED
    """Type of each exported array as the program returned it, such as `int32`, of at most `MAXIMUM_OUTPUTS` arrays."""
    output_shapes: Fact[dict[str, list[Count]]] = NOT_REPORTED
    changed: Fact[list[str]] = NOT_REPORTED
    """Names of tensors that the step captures and its calls have changed, at most `MAXIMUM_OUTPUTS`."""

    # The program.
    compile_cache: Fact[CompileCache] = NOT_REPORTED
    executable: Fact[ExecutableSize] = NOT_REPORTED
    compiled: Fact[CompiledFor] = NOT_REPORTED
    """Only of a launch that compiles for a target and runs nothing."""
    operations: Fact[DeclaredOperations] = NOT_REPORTED
    arithmetic: Fact[Arithmetic] = NOT_REPORTED
    recompilations: Fact[Count] = NOT_REPORTED
    recompilation_causes: Fact[list[str]] = NOT_REPORTED
    dependence: Fact[Dependence] = NOT_REPORTED
    formula: Fact[FormulaRun] = NOT_REPORTED
    observations: Fact[Observed] = NOT_REPORTED
    """Only of a launch with protocol `observe`, which times nothing."""
    profiled_calls: Fact[ProfiledCalls] = NOT_REPORTED
    """Only of a launch that explains, which times nothing."""

    # The device and the machine while blocks were timed.
    device: Fact[Device] = NOT_REPORTED
    clock: Fact[ClockQuality] = NOT_REPORTED
    replanned: Fact[Count] = NOT_REPORTED
    """Number of plans for the blocks that were dropped because a block took less than half of its planned time."""
    lateness: Fact[Lateness] = NOT_REPORTED
    """Only with protocol `arrivals`."""
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
    def parse(cls, reported: Mapping[str, Any], unanswered: Mapping[Probe, str] = MappingProxyType({})) -> Self:
        """Validate the facts that a launch reported; `reported` has them by camelCase name.

        `unanswered` maps each of accelbench's own probes that failed to the reason. A fact that is missing because its
        probe failed becomes an `Unreadable` with that reason.
        """
        values = dict(reported)
        for name, value in reported.items():
            if tag_of(value) == "unreadable":
                # Keep only the reason: a launch that set `probe_failed` itself would clear its variant of blame.
                reason = clip(str(value["why"]))
                values[name] = Unreadable(why=clip(f"the launch reported {name} that cannot be read: {reason}"))
        for name, probe in PROBE_OF.items():
            if probe in unanswered and reported.get(name) is None:
                values[name] = Unreadable(why=clip(unanswered[probe]), probe_failed=True)
        return cls.model_validate(values)

    @model_validator(mode="before")
    @classmethod
    def _fill_missing(cls, reported: Any) -> Any:
        """Replace each missing fact, also one that is None, by an `Unreadable`; convert names of facts to camelCase."""
        if not isinstance(reported, Mapping):
            return reported  # pydantic refuses it
        facts = {to_camel(name): value for name, value in reported.items() if value is not None}
        for name in map(to_camel, cls.model_fields):
            if name not in facts:
                facts[name] = Unreadable(why=f"the launch did not report {name}", reported=False)
        return facts

    @model_serializer(mode="wrap")
    def _omit_missing(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Serialise the facts that the launch reported, valid or not; leave out those that it did not report."""
        facts: dict[str, Any] = serialise(self)
        # An `Unreadable`, which is a dictionary here, is an invalid fact or, if `reported` is False, a missing one.
        return {name: value for name, value in facts.items() if tag_of(value) == "value" or value["reported"]}


PROBE_OF: Mapping[str, Probe] = {
    "throttling": "watch",
    "neighbours": "watch",
    "idle": "watch",
    "deviceReading": "watch",
    "energy": "watch",
    "synchronisation": "synchronisation",
    "limits": "limits",
    "formula": "formula",
}
"""Probe that provides each fact."""
