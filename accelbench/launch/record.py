"""Record one launch: its timings, its facts, how it ended, and the comparison of its outputs with the reference."""

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
"""Name of the workload's function that converts outputs before a comparison, as the cause of a failed comparison."""
MAXIMUM_SHOWN_RATIO = 1e9
"""Largest ratio of an error to its tolerance that messages show as a number."""
MISMATCH = sys.float_info.max
"""Ratio of an error to its tolerance, for errors that no tolerance allows: a wrong name, shape or integer."""
BEFORE_ROUNDS = 0
"""Round in the record of a variant that could not be launched at all."""

Activity = Literal["watch", "parity", "operations", "synchronisation", "dependence", "limits", "formula", "explain"]
"""Work of a launch outside its phases: calling NVML, exporting outputs for the parity check, running other checks."""


class Block(Document):
    """Hold one timed run of `units` of work between two synchronisations; with protocol `arrivals`, one request."""

    units: Annotated[int, Field(ge=1)]
    seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    response_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Seconds from a request's scheduled arrival to its end; `seconds` has its service alone. None without requests."""


class PhaseRecord(Document):
    """Hold the duration of one phase and of its parts, in seconds."""

    phase: Phase
    seconds: float
    parts: dict[str, float] = {}


class ParityReading(Document):
    """Hold the comparison of a launch's outputs with the float64 reference, after `units` units of work."""

    units: int
    finite: bool
    """True if there is no NaN or infinity other than those that the workload declares."""
    worst_ratio: float
    """Largest ratio of an error to its tolerance, of all exported arrays; above 1 the comparison failed.

    `MISMATCH` if no tolerance allows the error.
    """
    worst_array: str
    """Name of the array with that ratio."""
    detail: str
    """Error, tolerance and position in that array, for people."""
    diagnosis: str = ""
    """Likely cause of a wrong output, and what to do, for people."""
    reference_frameworks: tuple[str, ...] = ()
    """Frameworks that the reference was computed with."""
    reference_limit: str | None = None
    """Why the reference may be less exact than float64; empty without such a reason, None if unknown."""
    own_program: str = ""
    """Variant whose own program is the reference if the workload has none; the reference then has its mistakes."""
    failed_reference: str = ""
    """Function or variant whose failure left nothing to compare with; empty if outputs were compared.

    It is `reference()`, `canonical()`, or the variant whose own program is the reference. `detail` has the reason.
    """
    canonical: str = ""
    """Location of the function `canonical`, which converts outputs before they are compared; empty without it."""
    hidden_errors: str = ""
    """Errors of single numbers that `canonical` hides, for people; empty if it hides none of those that were tried."""
    compared: bool = True
    """False if the comparison cannot detect wrong outputs: no number is finite, or the right outputs are the initial
    state."""
    counts_units: bool = True
    """False if half as many units of work give the same outputs."""
    off: int = 0
    """Number of elements outside of their tolerance."""
    off_or_in_class: int = 0
    """Number of elements that are outside of their tolerance, or like elements whose median error is too large."""
    elements: int = 0
    """Number of elements that were compared."""
    sees_in_half: float | None = None
    """Smallest relative error that the comparison detects in half of the elements; at 1 or more it detects nothing."""
    sees_in_most: float | None = None
    """The same for nine tenths of the elements."""
    less_exact: bool = False
    """True if some errors are beyond their tolerance, and none is larger than the largest output's rounding error."""
    rounds_more: bool = False
    """True if errors are beyond their tolerance, and large in many elements, as more roundings make them."""
    worst_scales: float = 0.0
    """Largest error of a floating-point number, as a multiple of the number's rounding error."""
    relative_error: float = 0.0
    """Largest error of a floating-point number, as a multiple of its output's largest number."""
    formula: "ParityReading | None" = None
    """Comparison of the program's own outputs in float64 with the reference; None if it did not run in float64."""
    unseen: "UnseenReading | None" = None
    """Comparison of the outputs on inputs that the program was not built from; None without such outputs."""

    @property
    def off_share(self) -> float:
        """Return the share of elements that `off_or_in_class` counts."""
        return self.off_or_in_class / self.elements if self.elements else 0.0

    def describe_error(self) -> str:
        """Describe a failed comparison: its worst error, and how many outputs are outside of their tolerance."""
        if self.worst_ratio >= MISMATCH:  # such as a wrong shape, which no number describes
            return self.detail
        is_huge = self.worst_ratio > MAXIMUM_SHOWN_RATIO
        times = "more than a billion" if is_huge else figures.prose(self.worst_ratio)
        others = f"; {self.off:,} of {self.elements:,} outputs are off" if self.off > 1 else ""
        return f"{self.detail}, {times} times the tolerance{others}"


class UnseenReading(Document):
    """Hold the comparison of the outputs on inputs that the program was not built from."""

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
    """Record one complete launch of one variant, as the `launch` lines of the log do."""

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
    """None if no new process used its compile caches."""
    unfinished: Unfinished | None = None
    unchecked: Mapping[Probe, str] = {}
    """Reason for each of accelbench's own probes that gave no answer; the variant is not to blame."""
    ended_by: Probe | None = None
    """Probe that hung or crashed and ended the process; a completed measurement still counts."""
    probe_seconds: float = 0.0
    """Part of `wall_seconds` that successful probes took."""

    @property
    def protocol(self) -> LaunchProtocol:
        """Return the reported protocol; `steady` if none was reported, `observe` if the report is invalid."""
        protocol = self.facts.protocol
        if isinstance(protocol, Unreadable):
            # An invalid report must not lead to a verdict: with protocol `observe`, no times are compared.
            return "observe" if protocol.reported else "steady"
        return protocol

    @property
    def observes(self) -> bool:
        """Return True if the launch reported the protocol `observe`, and no block.

        Such a launch is excused from checks of times. A report with blocks contradicts itself, and an invalid report
        of the protocol (see `protocol`) is not one of `observe`: neither is excused.
        """
        return self.facts.protocol == "observe" and not self.blocks

    def seconds(self, quantity: Quantity | None = None) -> float | None:
        """Return the launch's seconds per unit of work; None if nothing was timed.

        `quantity` is a statistic of the blocks, such as their median; None stands for the protocol's first statistic,
        which decides the verdict.
        """
        quantities = QUANTITIES[self.protocol]
        if not quantities:
            return None
        return seconds_per_unit(self._timed(), quantity or quantities[0])

    def seconds_of_blocks(self) -> list[float]:
        """Return the seconds per unit of each block; for a request, its response time."""
        return [seconds / units for units, seconds in self._timed()]

    def _timed(self) -> list[tuple[int, float]]:
        """Return the units and the seconds of each block; for a request, its response time."""
        if self.protocol != "arrivals":
            return [(block.units, block.seconds) for block in self.blocks]
        return [(block.units, block.response_seconds) for block in self.blocks if block.response_seconds is not None]

    def service_seconds(self, percent: int = 50) -> float | None:
        """Return the quantile at `percent` of the requests' service times, without their wait in the queue.

        With another protocol than `arrivals`, nothing waits: return the launch's seconds per unit, whatever `percent`.
        None if nothing was timed.
        """
        if self.protocol != "arrivals":
            return self.seconds()
        return quantile([block.seconds for block in self.blocks], percent) if self.blocks else None
