"""Reduce what the launches of a variant report to one number each, and calculate the rest. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.case import Case
from accelbench.api.number import Reduction
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Bound, LimitsSource
from accelbench.launch.fact import Unreadable, known
from accelbench.launch.facts import EnergyScope
from accelbench.launch.record import LaunchRecord
from accelbench.validity.roofline import place, roof, work_per_unit, works_from_memory

LARGEST_RATIO = 1e15
"""Maximum parity that is stored: a wrong shape or name counts as an infinite error."""
REDUCTIONS: Mapping[Reduction, Callable[[Sequence[int]], int | None]] = {
    "agreed": lambda values: values[0] if len(set(values)) == 1 else None,
    "most": max,
    "fewest": min,
    "first": lambda values: values[0],
}
ENERGY: Mapping[EnergyScope, str] = {"device": "device_joules_per_unit", "processors": "cpu_joules_per_unit"}


@dataclass(frozen=True)
class UnitCost:
    """Hold the cost of a unit of work, by field of `Numbers`, and the roofline's limit that binds."""

    numbers: Mapping[str, float]
    bound: Bound | None = None
    limits: LimitsSource | None = None


def reported_numbers(launches: Sequence[LaunchRecord]) -> dict[str, Any]:
    """Return the numbers that launches report themselves, by field of `Numbers`; launches need no times."""
    values_by_name = {
        name: [value for launch in launches if (value := _fact(launch, number.fact)) is not None]
        for name, number in MEASURED.items()
        if number.fact
    }
    return {name: REDUCTIONS[MEASURED[name].launches](values) for name, values in values_by_name.items() if values}


def _fact(launch: LaunchRecord, path: str) -> Any:
    """Return the fact at `path`, such as `executable.peak_bytes`; None if the launch did not report it."""
    value: Any = launch.facts
    for name in path.split("."):
        value = known(getattr(value, name))
        if value is None:
            return None
    return value


def worst_parity(launches: Sequence[LaunchRecord]) -> float | None:
    """Return the largest error over its tolerance; None if no launch was compared."""
    ratios = [launch.parity.worst_ratio for launch in launches if launch.parity]
    return min(max(ratios), LARGEST_RATIO) if ratios else None


def cost(
    case: Case, launches: Sequence[LaunchRecord], all_launches: Sequence[LaunchRecord], seconds: float
) -> UnitCost:
    """Return the cost of a unit of work of one variant that takes `seconds` per unit.

    `launches` are the variant's. The measured limits of the device come from `all_launches` of the case.
    """
    numbers = joules(launches, seconds) | price(case, seconds)
    work = work_per_unit(launches[0])
    if work is None:
        return UnitCost(numbers)
    flops, bytes_moved = work
    limits = roof(case, all_launches)
    from_memory = works_from_memory(launches[0])
    placement = place(seconds, flops, bytes_moved, limits, from_memory=bool(from_memory))
    # Without a known cache size, memory may or may not be what binds.
    bound_is_unknown = from_memory is None and bytes_moved
    roofline_numbers = {
        "flops_per_unit": flops,
        "bytes_per_unit": bytes_moved,
        "flops_per_second": placement.flops_per_second,
        "bytes_per_second": placement.bytes_per_second,
        "intensity": placement.intensity,
        "share_of_limit": None if bound_is_unknown else placement.share,
        "limit_flops_per_second": limits.flops_per_second,
        "limit_bytes_per_second": limits.bytes_per_second,
    }
    numbers |= {name: value for name, value in roofline_numbers.items() if value}
    return UnitCost(numbers, None if bound_is_unknown else placement.bound, limits.source)


def price(case: Case, seconds: float) -> dict[str, float]:
    """Return the price of a unit in the case's currency; empty without a price per hour."""
    per_second = case.accelerator.price_per_second
    return {} if per_second is None else {"price_per_unit": per_second * seconds}


def joules(launches: Sequence[LaunchRecord], seconds: float) -> dict[str, float]:
    """Return the energy of a unit at the launches' median power; empty if no launch could read a counter.

    The field depends on what the first launch's counter covers: the device or the processors.
    """
    readings = [launch.facts.energy for launch in launches if not isinstance(launch.facts.energy, Unreadable)]
    if not readings:
        return {}
    watts = statistics.median(reading.joules / reading.seconds for reading in readings)
    return {ENERGY[readings[0].scope]: watts * seconds}
