"""Record one launch: its timings, the facts it read back, how it ended, and the judge's reading of its outputs."""

import sys
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from accelbench import figures
from accelbench.api.result import Failure, Phase
from accelbench.delivery.log import Unfinished
from accelbench.document import Document
from accelbench.launch.fact import NOT_REPORTED, Fact, Unreadable
from accelbench.launch.facts import CompileCache, Facts, Probe
from accelbench.stats.summary import QUANTITIES, LaunchProtocol, Quantity, quantile, seconds_per_unit

REFERENCE = "reference()"
"""Name of the workload's own reference as the cause of a failed comparison."""
CANONICAL = "canonical()"
"""Name of the function that gives outputs the form in which they are compared, as the cause of a failed comparison."""
MAXIMUM_SHOWN_RATIO = 1e9
MISMATCH = sys.float_info.max
"""Ratio of an error that no tolerance allows: a wrong name, shape or integer."""
BEFORE_ROUNDS = 0
"""Round of the record of a variant that could not be launched at all."""

Activity = Literal["watch", "parity", "operations", "synchronisation", "dependence", "limits", "formula"]
"""Work of a launch outside its phases: calling NVML, exporting outputs for the parity check, running other checks."""


class Block(Document):
    """Hold one timed run of `units` of work between two synchronisations; with protocol `arrivals`, one request."""

    units: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    response_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Seconds from a request's scheduled arrival to its end: `seconds` is its service alone. None without arrivals."""


class PhaseRecord(Document):
    """Hold the duration of one phase and of its parts, in seconds."""

    phase: Phase
    seconds: float
    parts: dict[str, float] = {}


class ParityReading(Document):
    """Hold the comparison of a launch's outputs with the float64 reference, after `units` units."""

    units: int
    finite: bool
    """True without NaN and infinity, except those that the workload declares."""
    worst_ratio: float
    """Largest error over its tolerance, over all exported arrays; above 1 the comparison failed.

    `MISMATCH` if no tolerance allows the error.
    """
    worst_array: str
    detail: str
    """Error, tolerance and position, for people."""
    diagnosis: str = ""
    """What the numbers show about the mistake, and what to do, for people."""
    reference_frameworks: tuple[str, ...] = ()
    """Frameworks that the reference was computed with."""
    reference_limit: str | None = None
    """What may keep the reference from being as exact as float64; empty if nothing does, None if unknown."""
    own_program: str = ""
    """Variant whose own program is the reference, if the workload has none; both then share mistakes."""
    failed_reference: str = ""
    """Name of what failed, so that there is nothing to compare with; empty if outputs were compared.

    It is `reference()`, `canonical()`, or the variant whose own program is the reference. `detail` has the reason.
    """
    canonical: str = ""
    """Where the function is that gave the outputs the form in which they were compared; empty without such a function.
    """
    hidden_errors: str = ""
    """Which errors of single numbers that form hides, for people; empty if it hides none that was tried."""
    compared: bool = True
    """False if right and wrong look the same: no number is finite, or the right outputs equal the initial ones."""
    counts_units: bool = True
    """False if half as many units give the same outputs."""
    off: int = 0
    """Number of elements outside of their tolerance."""
    elements: int = 0
    """Number of elements that were compared."""
    sees_in_half: float | None = None
    """Smallest relative error that is detected in half of the elements; 1 or more detects nothing."""
    sees_in_most: float | None = None
    """The same for nine tenths of the elements."""
    less_exact: bool = False
    """True if the only errors beyond their tolerance are few, and no larger than a rounding of the largest output."""
    worst_scales: float = 0.0
    """Largest error of a float in scales: in units of the error that rounding makes there."""
    formula: "ParityReading | None" = None
    """Comparison of the outputs in float64 with the float64 reference; None if there are none."""
    unseen: "UnseenReading | None" = None
    """Comparison of the outputs on inputs that the program was not built from; None if there are none."""

    def describe_error(self) -> str:
        """Describe a failed comparison: its worst error, and how many outputs are outside of their tolerance."""
        if self.worst_ratio >= MISMATCH:  # no tolerance allows it, such as a wrong shape, so no number describes it
            return self.detail
        is_huge = self.worst_ratio > MAXIMUM_SHOWN_RATIO
        times = "more than a billion" if is_huge else figures.prose(self.worst_ratio)
        others = f"; {self.off:,} of {self.elements:,} outputs are off" if self.off > 1 else ""
        return f"{self.detail}, {times} times the tolerance{others}"


class UnseenReading(Document):
    """Hold the comparison of outputs on inputs that the program was not built from."""

    reading: ParityReading
    changes: bool
    """True if the right outputs differ from those on the original inputs by more than the tolerance."""


class WarmProbe(Document):
    """Hold the times of a new process that used the compile caches of a launch, up to the end of its first step."""

    phases: tuple[PhaseRecord, ...] = ()
    cache: Fact[CompileCache] = NOT_REPORTED
    failure: str | None = None
    wall_seconds: float = 0.0

    @property
    def has_only_hits(self) -> bool:
        """Return True if the compile cache had hits and no miss."""
        return isinstance(self.cache, CompileCache) and self.cache.hits > 0 and not self.cache.misses


class LaunchRecord(Document):
    """Record one complete launch of one variant, as the log's `launch` lines carry it."""

    variant: str
    round: int
    position: int
    """Position in the round's order, from 0."""
    wall_seconds: float
    phases: tuple[PhaseRecord, ...] = ()
    asides: dict[Activity, Annotated[float, Field(ge=0, allow_inf_nan=False)]] = {}
    """Seconds spent outside the phases, by kind of work."""
    blocks: tuple[Block, ...] = ()
    facts: Facts = Facts()
    printed_bytes: int = 0
    """Bytes that the variant printed while its steps were repeated."""
    failure: Failure | None = None
    parity: ParityReading | None = None
    """None if its outputs were not compared."""
    warm: WarmProbe | None = None
    unfinished: Unfinished | None = None
    unchecked: Mapping[Probe, str] = {}
    """Accelbench's own probes that gave no answer, with the reason; the variant is not to blame."""
    ended_by: Probe | None = None
    """Probe that hung or crashed and ended the process; a completed measurement still counts."""
    probe_seconds: float = 0.0
    """Part of the wall seconds that successful probes took."""

    @property
    def protocol(self) -> LaunchProtocol:
        """Return the reported protocol: `steady` if none was reported, `observe` if it was invalid."""
        protocol = self.facts.protocol
        if isinstance(protocol, Unreadable):
            # No times are compared in the protocol `observe`, so that an invalid report leads to no verdict on them.
            return "observe" if protocol.reported else "steady"
        return protocol

    @property
    def observes(self) -> bool:
        """Return True if the launch has the protocol `observe` and timed no block."""
        return self.facts.protocol == "observe" and not self.blocks

    def seconds(self, quantity: Quantity | None = None) -> float | None:
        """Return the launch's seconds per unit of work; None if nothing was timed.

        `quantity` is a statistic of the blocks, such as their median; None stands for the protocol's first statistic.
        """
        quantities = QUANTITIES[self.protocol]
        if not quantities:
            return None
        return seconds_per_unit(self._timed(), quantity or quantities[0])

    def seconds_of_blocks(self) -> list[float]:
        """Return the seconds per unit of each block: of a request, those of its response."""
        return [seconds / units for units, seconds in self._timed()]

    def _timed(self) -> list[tuple[int, float]]:
        """Return the units and the compared seconds of each block: of a request, those of its response."""
        if self.protocol != "arrivals":
            return [(block.units, block.seconds) for block in self.blocks]
        return [(block.units, block.response_seconds) for block in self.blocks if block.response_seconds is not None]

    def service_seconds(self, percent: int = 50) -> float | None:
        """Return the quantile at `percent` of the seconds that requests were served, without their wait in a queue.

        In other protocols nothing waits: these are then the launch's seconds, whatever `percent` is.
        """
        if self.protocol != "arrivals":
            return self.seconds()
        return quantile([block.seconds for block in self.blocks], percent) if self.blocks else None
