"""What validity checks look at: what each launch measured and said of itself.

The runner's records have these shapes; they are spelled out here because `accelbench` does not know the runner. Facts
come from a process that ran a user's code: they may be missing or garbage, and are read through `fact` alone.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal, Protocol, TypeVar, get_args

from annotated_types import Ge, Gt, Len
from pydantic import BaseModel, ConfigDict, FiniteFloat, StringConstraints, TypeAdapter, ValidationError
from pydantic.types import NonNegativeInt

from accelbench.api.case import Case
from accelbench.stats.summary import QUANTITIES, Quantity, seconds_per_unit
from accelbench.workload import ProtocolName


class Block(Protocol):
    """One timed run of `steps` units between two synchronisations."""

    @property
    def steps(self) -> int:
        """Units of work, at least one."""
        ...

    @property
    def seconds(self) -> float:
        """How long they took together."""
        ...


MISMATCH = sys.float_info.max
"""The ratio of an error that no tolerance allows: a wrong name, shape or integer."""


class Parity(Protocol):
    """A launch's outputs against the float64 reference."""

    @property
    def finite(self) -> bool:
        """No NaN and no infinity, but those that the workload declares."""
        ...

    @property
    def worst_ratio(self) -> float:
        """The largest error over its tolerance; `MISMATCH` where no tolerance allows it."""
        ...

    @property
    def detail(self) -> str:
        """For people: where, how much, how much was allowed."""
        ...

    @property
    def reference_frameworks(self) -> tuple[str, ...]:
        """That the reference was computed with."""
        ...

    @property
    def compared(self) -> bool:
        """False: no number is finite, as the workload declares."""
        ...

    @property
    def counts_units(self) -> bool:
        """False: half as many units would have given the same."""
        ...

    @property
    def unseen(self) -> "Unseen | None":
        """The same on inputs that the launch had not seen; None: it was given none."""
        ...


class Unseen(Protocol):
    """Outputs on inputs that a launch had not seen."""

    @property
    def reading(self) -> Parity:
        """Against the reference on those."""
        ...

    @property
    def changes(self) -> bool:
        """What is right differs from what is right on the inputs that the program was built from."""
        ...


class WarmProbe(Protocol):
    """A second start on the caches that a launch has left."""

    @property
    def cache(self) -> Any:
        """What it reported of hits and misses."""
        ...

    @property
    def failure(self) -> str | None:
        """None: it reached the end of its first step."""
        ...


class Launch(Protocol):
    """One launch that measured what it was asked to."""

    @property
    def variant(self) -> str:
        """The variant's name in the case."""
        ...

    @property
    def round(self) -> int:
        """The round it belongs to."""
        ...

    @property
    def blocks(self) -> Sequence[Block]:
        """What it timed, in order."""
        ...

    @property
    def facts(self) -> Mapping[str, Any]:
        """What it read back, by name."""
        ...

    @property
    def parity(self) -> Parity | None:
        """None: its outputs were never compared."""
        ...

    @property
    def warm(self) -> WarmProbe | None:
        """None: there was none."""
        ...

    @property
    def unchecked(self) -> "Mapping[Probe, str]":
        """Which of accelbench's own probes gave no answer, and why: no doing of the variant's."""
        ...


@dataclass(frozen=True)
class Evidence:
    """A case and its launches that did not fail, in the order they were made."""

    case: Case
    launches: tuple[Launch, ...]
    """Those that count."""
    quarantined: tuple[Launch, ...] = ()
    """Those of disturbed rounds."""

    def of(self, variant: str) -> tuple[Launch, ...]:
        """The launches of one variant."""
        return tuple(launch for launch in self.launches if launch.variant == variant)

    def quarantined_of(self, variant: str) -> tuple[Launch, ...]:
        """The quarantined launches of one variant."""
        return tuple(launch for launch in self.quarantined if launch.variant == variant)

    @property
    def nothing_timed(self) -> bool:
        """Every launch observes."""
        return bool(self.launches) and all(map(observes, self.launches))

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants that have launches, in the case's order."""
        return tuple(variant.name for variant in self.case.variants if self.of(variant.name))


def protocol_of(launch: Launch) -> ProtocolName:
    """How the launch says that it measured: `steady`, as all once did, where it does not say.

    `observe`, by which nothing is compared, where what it says is no protocol.
    """
    if "protocol" not in launch.facts:
        return "steady"
    return next((name for name in QUANTITIES if name == launch.facts["protocol"]), "observe")


def observes(launch: Launch) -> bool:
    """It says that it observes, and has timed nothing."""
    return launch.facts.get("protocol") == "observe" and not launch.blocks


def launch_seconds(launch: Launch, quantity: Quantity | None = None) -> float | None:
    """Seconds per unit: what the launch's protocol is decided by, or the `quantity`; None where nothing was timed."""
    quantities = QUANTITIES[protocol_of(launch)]
    if not quantities:
        return None
    return seconds_per_unit(((block.steps, block.seconds) for block in launch.blocks), quantity or quantities[0])


PositiveFloat = Annotated[FiniteFloat, Gt(0)]


class Fact(BaseModel):
    """A fact with fields; those that no check reads are let through."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)


class Device(Fact):
    """Where the output array lived after the run."""

    platform: str
    name: str


class Threads(Fact):
    """Threads asked for, processors the process may run on, and what the framework says it uses."""

    requested: int
    affinity: int
    framework: int | None = None


class Precision(Fact):
    """What was set and read back: the policy, the arrays' type, how products of float32 are computed."""

    policy: str
    dtype: str
    matmul: dict[str, str | None] = {}
    """By the framework's own setting."""
    flush_denormal: bool | None = None


class Clock(Fact):
    """The clock that blocks were timed with."""

    resolution_seconds: FiniteFloat
    reading_seconds: FiniteFloat = 0.0
    """What reading it costs."""
    drift: FiniteFloat = 0.0
    """How far it ran ahead of the raw clock while blocks were timed, as a share."""


class Throttling(Fact):
    """What was taken from the launch's steady phase, by its control group and by the hypervisor."""

    periods: NonNegativeInt
    """Periods in which the group was held back by its quota."""
    seconds: FiniteFloat
    """How long it was held back, over all processors."""
    steal_seconds: FiniteFloat = 0.0
    """Time of its processors that the hypervisor gave to others."""
    pressure_seconds: FiniteFloat = 0.0
    """For which some task waited for a processor; a launch's own threads that wait for each other count too."""


class Process(Fact):
    """Another process, and the processor time that it used in the launch's steady phase."""

    name: Annotated[str, StringConstraints(max_length=40)]
    pid: NonNegativeInt
    seconds: Annotated[FiniteFloat, Ge(0)]


class Neighbours(Fact):
    """What other processes did on the launch's processors during its steady phase."""

    busy_seconds: FiniteFloat
    """Processor time that was spent, and not by the launch; below zero where the kernel's ticks missed some."""
    offered_seconds: PositiveFloat
    """The phase's wall seconds times the processors that the launch may run on."""
    processes: Annotated[list[Process], Len(0, 3)] = []
    """Those that used most, as far as they can be seen from where the launch runs."""


class Counts(Fact):
    """Matrix products and convolutions in one call."""

    products: NonNegativeInt
    convolutions: NonNegativeInt


class Operations(Fact):
    """What the workload declares that one call does, and what was found; None where it could not be counted."""

    declared: Counts
    found: Counts | None
    source: str | None
    """What they were counted in."""


class Arithmetic(Fact):
    """Floating-point arithmetic of one call: operations, None for what could not be counted, and what they work on."""

    written: FiniteFloat | None
    """In the program as its author wrote it."""
    run: FiniteFloat | None
    """In what is left of it after all optimisation."""
    source: str
    types: list[str] = []
    """Of the arrays that it takes and makes."""
    recorded: bool = False
    """Autograd recorded operations."""


class Executable(Fact):
    """What was compiled for a call; None for what its framework does not tell."""

    kernels_per_call: NonNegativeInt | None = None
    program_size: NonNegativeInt | None = None
    aliased_bytes: NonNegativeInt | None = None
    temporary_bytes: NonNegativeInt | None = None


class Gpu(Fact):
    """What NVML says of the launch's steady phase; None where it does not say."""

    seconds: PositiveFloat
    """Of the phase."""
    held_back_seconds: dict[str, FiniteFloat] | None = None
    """For which the clocks were below what was asked for, by why."""
    other_processes: NonNegativeInt | None = None
    """That computed on the same device."""


class Limits(Fact):
    """What the launch's own framework reached on its device: a large matrix product, a stream triad."""

    flops_per_second: PositiveFloat
    bytes_per_second: PositiveFloat


class WorkingSet(Fact):
    """What a call works on, and the last-level cache of the device; None where that does not say."""

    bytes: NonNegativeInt
    cache_bytes: NonNegativeInt | None = None


class Energy(Fact):
    """What the device spent in the launch's steady phase, or by RAPL all processors of the machine."""

    joules: PositiveFloat
    seconds: PositiveFloat
    """Of the phase."""
    source: Literal["nvml", "rapl"]


class Run(Fact):
    """A run of calls, apart from the blocks, and what it left undone."""

    seconds: PositiveFloat
    late_seconds: FiniteFloat
    """For which the process was still at work, or the device, after the clock had stopped."""


class Synchronisation(Fact):
    """What was found when the clock had stopped."""

    runs: Annotated[list[Run], Len(1, 2)]
    """One as long as a block, and in the first rounds a longer one."""
    ready: bool | None = None
    """Whether all that the calls returned was there; None where the framework cannot say."""


class Replay(Fact):
    """A block's calls, timed and not: how far apart the results are, as a share of their size; None: nothing finite."""

    calls: NonNegativeInt
    timed: FiniteFloat | None
    """Of the block's from those of untimed calls."""
    untimed: FiniteFloat | None
    """Of untimed calls from themselves."""


class Dependence(Fact):
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


class Gradients(Fact):
    """Whether the workload differentiates, and whether autograd was found to be recording."""

    wanted: bool
    found: Literal["on", "off", "functional"]


class Meddling(Fact):
    """What the program changed of what measures it."""

    flags: list[str] = []
    """Environment variables that frameworks read, set by its file."""
    functions: list[str] = []
    """Of accelbench's own."""


class Idle(Fact):
    """How much of the blocks' time the process computed or waited for its turn to; the rest, it waited for nothing."""

    seconds: PositiveFloat
    busy_seconds: Annotated[FiniteFloat, Ge(0)]


class HostOverDevice(Fact):
    """A block's seconds by the host's clock over those by the device's events."""

    least: PositiveFloat
    """Of all blocks."""


Aside = Literal["watch", "parity", "operations", "synchronisation", "dependence", "limits"]
"""What a launch does beside its phases: asking NVML, the outputs for the parity check, the looks of other checks."""
Probe = Literal["watch", "synchronisation", "limits"]
"""What accelbench asks on its own account, without a step of the variant's: where it hangs or crashes, we are to blame.

Of the aside `synchronisation` only the products that leave nothing undone; it makes calls of the variant's too.
"""
PROBES: tuple[Probe, ...] = get_args(Probe)
FOUND_BY: Mapping[str, Probe] = {
    "throttling": "watch",
    "neighbours": "watch",
    "idle": "watch",
    "gpu": "watch",
    "energy": "watch",
    "synchronisation": "synchronisation",
    "limits": "limits",
}
"""The probe that a fact comes from."""
Asides = dict[Aside, Annotated[FiniteFloat, Ge(0)]]
"""The fact `aside`: seconds."""

Digest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]

T = TypeVar("T")
MAXIMUM_CHARACTERS = 160


@dataclass(frozen=True)
class Unreadable:
    """A fact that is missing or is not what it should be."""

    why: str
    ours: bool = False
    """A probe of accelbench's own gave no answer: nothing that a variant could be blamed for."""


def fact(launch: Launch, name: str, kind: type[T]) -> T | Unreadable:
    """The fact `name` as a `kind`, or why it cannot be had."""
    if name not in launch.facts:
        probe = FOUND_BY.get(name)
        if probe is not None and probe in launch.unchecked:
            return Unreadable(clip(launch.unchecked[probe]), ours=True)
        return Unreadable(f"the launch did not report {name}")
    return readable(name, launch.facts[name], kind)


_reader: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def readable(name: str, reported: Any, kind: type[T]) -> T | Unreadable:
    """What was `reported` under `name` as a `kind`, or why it cannot be had."""
    try:
        value: T = _reader(kind).validate_python(reported, strict=True)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        place = ".".join([name, *map(str, problem["loc"])])
        return Unreadable(clip(f"the launch reported {place} that cannot be read: {problem['msg']}"))
    return value


def clip(text: str) -> str:
    """At most `MAXIMUM_CHARACTERS`: what a launch says must not fill the result."""
    return text if len(text) <= MAXIMUM_CHARACTERS else text[: MAXIMUM_CHARACTERS - 1] + "…"
