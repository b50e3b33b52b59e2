"""Compute the roofline: how fast a computation can be on its device, and which of two limits binds.

S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", Communications of the ACM 52(4), 2009.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.api.result import Bound, LimitsSource
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.data_sheets import SHEETS

CACHE_MULTIPLE = 4
"""Multiple of the last-level cache above which a working set is certain not to fit, so that its bytes come from memory.
"""


@dataclass(frozen=True)
class Roof:
    """Hold the limits of a device; None if unknown."""

    flops_per_second: float | None
    bytes_per_second: float | None
    source: LimitsSource | None
    launches: int = 0
    """Number of launches that measured the limits, if `source` is "measured"."""


@dataclass(frozen=True)
class Placed:
    """Hold a computation's rates and its share of the binding limit."""

    flops_per_second: float
    bytes_per_second: float
    intensity: float | None
    """FLOPs per byte; None if no byte has to move."""
    bound: Bound | None
    """The limit that binds; None if a deciding limit is unknown."""
    share: float | None
    """Rate as a share of what that limit allows."""


def place(seconds: float, flops: float, moved: float, roof: Roof, *, from_memory: bool) -> Placed:
    """Relate `flops` operations and `moved` bytes in `seconds` to the device's limits.

    Memory is a limit only if `from_memory`: a cache may hold the working set otherwise. If a limit that applies is
    unknown, none binds.
    """
    needed: dict[Bound, float] = {}
    if flops and roof.flops_per_second:
        needed["compute"] = flops / roof.flops_per_second
    if moved and from_memory and roof.bytes_per_second:
        needed["memory"] = moved / roof.bytes_per_second
    complete = ("compute" in needed or not flops) and ("memory" in needed or not (moved and from_memory))
    bound = max(needed.items(), key=lambda item: item[1])[0] if needed and complete else None
    return Placed(
        flops_per_second=flops / seconds,
        bytes_per_second=moved / seconds,
        intensity=flops / moved if moved else None,
        bound=bound,
        share=needed[bound] / seconds if bound else None,
    )


UNKNOWN = Roof(flops_per_second=None, bytes_per_second=None, source=None)


def roof(case: Case, launches: Iterable[LaunchRecord]) -> Roof:
    """Return the limits by the device's data sheet, else the highest that any launch measured, else unknown ones.

    A data sheet that lacks the case's precision leaves the FLOP/s unknown.
    """
    launches = tuple(launches)
    for launch in launches:
        device = launch.facts.device
        if not isinstance(device, Unreadable) and device.name in SHEETS:
            sheet = SHEETS[device.name]
            flops = sheet.flops_per_second.get(case.measurement.precision)
            return Roof(flops, sheet.bytes_per_second, "data-sheet")
    measured = [limits for launch in launches if not isinstance(limits := launch.facts.limits, Unreadable)]
    if not measured:
        return UNKNOWN
    return Roof(
        flops_per_second=max(limits.flops_per_second for limits in measured),
        bytes_per_second=max(limits.bytes_per_second for limits in measured),
        source="measured",
        launches=len(measured),
    )


def works_from_memory(launch: LaunchRecord) -> bool | None:
    """Return True if the working set exceeds `CACHE_MULTIPLE` last-level caches, so that it cannot fit in one.

    None if its size or the cache's is unknown.
    """
    working_set = launch.facts.working_set
    device = launch.facts.device
    if isinstance(working_set, Unreadable):
        return None
    cache = working_set.cache_bytes
    if not isinstance(device, Unreadable) and device.name in SHEETS:
        cache = SHEETS[device.name].cache_bytes
    return None if cache is None else working_set.bytes > CACHE_MULTIPLE * cache


def work_per_unit(launch: LaunchRecord) -> tuple[float, float] | None:
    """Return the analytic FLOPs and bytes of one unit; None if the launch reports neither."""
    flops, moved = launch.facts.flops_per_unit, launch.facts.bytes_per_unit
    if isinstance(flops, Unreadable) and isinstance(moved, Unreadable):
        return None
    return (0.0 if isinstance(flops, Unreadable) else flops, 0.0 if isinstance(moved, Unreadable) else moved)
