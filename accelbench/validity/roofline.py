"""The roofline: how fast a computation could be at most on its device, and which of two limits binds.

S. Williams, A. Waterman and D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore
Architectures", Communications of the ACM 52(4), 2009. Pure, for the supervisor and the validity checks.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from accelbench.api.case import Case
from accelbench.api.result import Bound, LimitsSource
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.data_sheets import SHEETS

CACHES = 4
"""A working set this many times the last-level cache cannot live in it: what it moves comes from memory."""


@dataclass(frozen=True)
class Roof:
    """What a device can do; None where it is not known."""

    flops_per_second: float | None
    bytes_per_second: float | None
    source: LimitsSource | None
    launches: int = 0
    """How many measured it, where that is the source."""


@dataclass(frozen=True)
class Placed:
    """A computation under its roof."""

    flops_per_second: float
    bytes_per_second: float
    intensity: float | None
    """FLOPs for each byte; None where no byte has to move."""
    bound: Bound | None
    """The limit that it would meet first; None where what would decide is not known."""
    share: float | None
    """Of what that limit allows."""


def place(seconds: float, flops: float, moved: float, roof: Roof, *, from_memory: bool) -> Placed:
    """Where `flops` operations and `moved` bytes in `seconds` stand; memory is no limit for what a cache holds."""
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


NOWHERE = Roof(flops_per_second=None, bytes_per_second=None, source=None)


def roof(case: Case, launches: Iterable[LaunchRecord]) -> Roof:
    """By the device's data sheet, else the best that any launch measured on it, else nowhere."""
    launches = tuple(launches)
    for launch in launches:
        device = launch.facts.device
        if not isinstance(device, Unreadable) and device.name in SHEETS:
            sheet = SHEETS[device.name]
            flops = sheet.flops_per_second.get(case.measurement.precision)
            return Roof(flops, sheet.bytes_per_second, "data-sheet")
    told = [launch.facts.limits for launch in launches]
    measured = [each for each in told if not isinstance(each, Unreadable)]
    if not measured:
        return NOWHERE
    return Roof(
        flops_per_second=max(each.flops_per_second for each in measured),
        bytes_per_second=max(each.bytes_per_second for each in measured),
        source="measured",
        launches=len(measured),
    )


def works_from_memory(launch: LaunchRecord) -> bool | None:
    """Whether its working set is too large for the last-level cache; None where that is not known."""
    told = launch.facts.working_set
    device = launch.facts.device
    if isinstance(told, Unreadable):
        return None
    cache = told.cache_bytes
    if not isinstance(device, Unreadable) and device.name in SHEETS:
        cache = SHEETS[device.name].cache_bytes
    return None if cache is None else told.bytes > CACHES * cache


def work_per_unit(launch: LaunchRecord) -> tuple[float, float] | None:
    """Analytic FLOPs and bytes of one unit; None where the launch tells neither."""
    flops, moved = launch.facts.flops_per_unit, launch.facts.bytes_per_unit
    if isinstance(flops, Unreadable) and isinstance(moved, Unreadable):
        return None
    return (0.0 if isinstance(flops, Unreadable) else flops, 0.0 if isinstance(moved, Unreadable) else moved)
