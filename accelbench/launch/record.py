"""The record of one launch: what it timed, what it read back, how it ended, and what the judge made of its outputs."""

import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from accelbench.api.result import Failure, Phase
from accelbench.delivery.log import Unfinished
from accelbench.document import Document
from accelbench.launch.fact import NOT_REPORTED, Fact, Unreadable
from accelbench.launch.facts import CompileCache, Facts, Probe
from accelbench.stats.summary import QUANTITIES, LaunchProtocol, Quantity, seconds_per_unit

MISMATCH = sys.float_info.max
"""The ratio of an error that no tolerance allows: a wrong name, shape or integer."""

Aside = Literal["watch", "parity", "operations", "synchronisation", "dependence", "limits"]
"""What a launch does beside its phases: asking NVML, the outputs for the parity check, the looks of other checks."""


class Block(Document):
    """One timed run of `units` of work between two synchronisations."""

    units: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class PhaseRecord(Document):
    """How long a phase of one launch took, and what it is made of."""

    phase: Phase
    seconds: float
    parts: dict[str, float] = {}


class ParityReading(Document):
    """One launch's outputs against the float64 reference, after `units` units."""

    units: int
    finite: bool
    """No NaN and no infinity, but those that the workload declares."""
    worst_ratio: float
    """The largest error over its tolerance, over all exported arrays; above 1 the comparison has failed.

    `MISMATCH` where no tolerance allows it.
    """
    worst_array: str
    detail: str
    """For people: the error, the tolerance and where."""
    reference_frameworks: tuple[str, ...] = ()
    """That the reference was computed with."""
    own_program: str = ""
    """The variant whose own program the reference is, where the workload has none: it is as wrong as that is."""
    compared: bool = True
    """False: nothing tells right from wrong, as no number is finite or what is right is what there was before."""
    counts_units: bool = True
    """False: half as many units would have given the same."""
    unseen: "UnseenReading | None" = None
    """Of the same launch on inputs that it had not seen; None: it was given none."""


class UnseenReading(Document):
    """Outputs on other inputs than those a program was built from."""

    reading: ParityReading
    changes: bool
    """What is right differs from what is right on the inputs it was built from, by more than the tolerance."""


class WarmProbe(Document):
    """What a new process took on the compile caches that a launch had left, up to the end of its first step."""

    phases: tuple[PhaseRecord, ...] = ()
    cache: Fact[CompileCache] = NOT_REPORTED
    failure: str | None = None
    wall_seconds: float = 0.0

    @property
    def answered(self) -> bool:
        """Whether it found all that it needed in the cache."""
        return isinstance(self.cache, CompileCache) and self.cache.hits > 0 and not self.cache.misses


class LaunchRecord(Document):
    """One launch of one variant, whole: what `launch` lines of the log carry."""

    variant: str
    round: int
    position: int
    """Place in the round's order, from 0."""
    wall_seconds: float
    phases: tuple[PhaseRecord, ...] = ()
    asides: dict[Aside, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Seconds spent beside the phases, by what on."""
    blocks: tuple[Block, ...] = ()
    facts: Facts = Facts()
    printed_bytes: int = 0
    """While its steps ran again and again."""
    failure: Failure | None = None
    parity: ParityReading | None = None
    """None: its outputs were never compared."""
    warm: WarmProbe | None = None
    unfinished: Unfinished | None = None
    unchecked: Mapping[Probe, str] = {}
    """Probes of accelbench's own that gave no answer, and why: no doing of the variant's."""
    ended_by: Probe | None = None
    """The probe that hung or crashed, and the process with it; a measurement that was complete stands."""
    probe_seconds: float = 0.0
    """Of the wall seconds: what those probes took that gave an answer, too."""

    @property
    def protocol(self) -> LaunchProtocol:
        """How the launch says that it measured: `steady`, as all once did, where it does not say.

        `observe`, by which nothing is compared, where what it says is no protocol.
        """
        said = self.facts.protocol
        if isinstance(said, Unreadable):
            return "observe" if said.reported else "steady"
        return said

    @property
    def observes(self) -> bool:
        """It says that it observes, and has timed nothing."""
        return self.facts.protocol == "observe" and not self.blocks

    def seconds(self, quantity: Quantity | None = None) -> float | None:
        """Seconds per unit: what its protocol is decided by, or the `quantity`; None where nothing was timed."""
        quantities = QUANTITIES[self.protocol]
        if not quantities:
            return None
        return seconds_per_unit(((block.units, block.seconds) for block in self.blocks), quantity or quantities[0])
