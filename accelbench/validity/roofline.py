"""Compute the roofline: how fast a computation can be on its device, and which of two limits bounds its speed.

S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", Communications of the ACM 52(4), 2009.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from accelbench.api.case import Case
from accelbench.api.result import Bound, LimitsSource
from accelbench.launch.fact import Unreadable, value_or_none
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
class RooflinePoint:
    """Hold a computation's rates, the limit that bounds its speed, and how close it is to that limit."""

    flops_per_second: float
    bytes_per_second: float
    intensity: float | None
    """FLOPs per byte; None if no byte has to move."""
    bound: Bound | None
    """The limit that bounds the speed; None if that cannot be decided, because a limit is unknown."""
    share: float | None
    """The computation's rate as a share of that limit."""


def roofline_point(seconds: float, flops: float, bytes_moved: float, roof: Roof, *, from_memory: bool) -> RooflinePoint:
    """Compare the speed of a computation, which takes `seconds`, with the device's limits.

    `flops` is the number of its operations, and `bytes_moved` that of the bytes that it reads and writes. If
    `from_memory` is False, these may come from a cache, and memory does not limit the speed.
    """
    memory_applies = bytes_moved > 0 and from_memory
    needed_seconds: dict[Bound, float] = {}
    if flops and roof.flops_per_second:
        needed_seconds["compute"] = flops / roof.flops_per_second
    if memory_applies and roof.bytes_per_second:
        needed_seconds["memory"] = bytes_moved / roof.bytes_per_second
    # The larger of both times decides. It is unknown if a limit applies whose rate is unknown.
    compute_is_unknown = flops > 0 and "compute" not in needed_seconds
    memory_is_unknown = memory_applies and "memory" not in needed_seconds
    bound: Bound | None = None
    if needed_seconds and not compute_is_unknown and not memory_is_unknown:
        bound, _ = max(needed_seconds.items(), key=lambda item: item[1])
    return RooflinePoint(
        flops_per_second=flops / seconds,
        bytes_per_second=bytes_moved / seconds,
        intensity=flops / bytes_moved if bytes_moved else None,
        bound=bound,
        share=needed_seconds[bound] / seconds if bound else None,
    )


UNKNOWN_ROOF = Roof(flops_per_second=None, bytes_per_second=None, source=None)


def device_roof(case: Case, launches: Iterable[LaunchRecord]) -> Roof:
    """Return the FLOP/s and bytes/s that the device can reach: those of its data sheet, or else the measured ones.

    `case` decides the arithmetic whose FLOP/s a data sheet gives. Without a data sheet and measured limits, all are
    None.
    """
    launches = tuple(launches)
    for launch in launches:
        device = launch.facts.device
        if not isinstance(device, Unreadable) and device.name in SHEETS:
            sheet = SHEETS[device.name]
            flops = sheet.flops_per_second.get(case.arithmetic)
            return Roof(flops, sheet.bytes_per_second, "data-sheet")
    limits_of_launches = [launch.facts.limits for launch in launches]
    measured = [limits for limits in limits_of_launches if not isinstance(limits, Unreadable)]
    if not measured:
        return UNKNOWN_ROOF
    return Roof(
        # A launch may measure too little, but nothing runs faster than the device can: the largest is nearest.
        flops_per_second=max(limits.flops_per_second for limits in measured),
        bytes_per_second=max(limits.bytes_per_second for limits in measured),
        source="measured",
        launches=len(measured),
    )


def works_from_memory(launch: LaunchRecord) -> bool | None:
    """Return True if the working set is too large for the cache; None if unknown.

    The cache's size is that of the device's data sheet, or else the one that the launch reported.
    """
    working_set = launch.facts.working_set
    device = launch.facts.device
    if isinstance(working_set, Unreadable):
        return None
    cache_bytes = working_set.cache_bytes
    if not isinstance(device, Unreadable) and device.name in SHEETS:
        cache_bytes = SHEETS[device.name].cache_bytes
    if cache_bytes is None:
        return None
    return working_set.bytes > CACHE_MULTIPLE * cache_bytes


class DeclaredWork(NamedTuple):
    """Hold what a workload declares that a unit of its work needs."""

    flops: float
    bytes_moved: float


def work_per_unit(launch: LaunchRecord) -> DeclaredWork | None:
    """Return what the launch's workload declares that a unit of work needs; None if it declares nothing."""
    flops = value_or_none(launch.facts.flops_per_unit)
    bytes_moved = value_or_none(launch.facts.bytes_per_unit)
    if flops is None and bytes_moved is None:
        return None
    return DeclaredWork(flops or 0.0, bytes_moved or 0.0)
