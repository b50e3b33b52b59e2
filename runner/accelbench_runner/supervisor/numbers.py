"""Reduce the values that a variant's launches report to one value for each field of `Numbers`. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.case import Case
from accelbench.api.number import Reduction
from accelbench.api.numbers import MEASURED
from accelbench.api.result import Bound, LimitsSource
from accelbench.launch.fact import Unreadable, value_or_none
from accelbench.launch.facts import EnergyScope
from accelbench.launch.record import LaunchRecord
from accelbench.stats.summary import geometric_mean, has_tail
from accelbench.validity.roofline import device_roof, roofline_point, work_per_unit, works_from_memory
from accelbench.validity.saturated import utilisation

LARGEST_RATIO = 1e15
"""Maximum parity that is stored: a wrong shape or name counts as an infinite error."""
REDUCTIONS: Mapping[Reduction, Callable[[Sequence[int]], int | None]] = {
    "agreed": lambda values: values[0] if len(set(values)) == 1 else None,
    "most": max,
    "fewest": min,
    "first": lambda values: values[0],
}
"""Functions that reduce the values of a variant's launches, at least one, to one value."""
ENERGY: Mapping[EnergyScope, str] = {"device": "device_joules_per_unit", "processors": "cpu_joules_per_unit"}
"""Field of `Numbers` by what the energy was measured of."""


@dataclass(frozen=True)
class UnitCost:
    """Hold what a unit of work costs, by field of `Numbers`, and which limit of the device bounds its speed."""

    numbers: Mapping[str, float]
    bound: Bound | None = None
    limits: LimitsSource | None = None


def reported_numbers(launches: Sequence[LaunchRecord]) -> dict[str, Any]:
    """Return one value for each field of `Numbers` that a launch reported, reduced from the values of all launches."""
    reduced = {}
    for field, description in MEASURED.items():
        if not description.fact:
            continue  # the number is calculated, not reported
        values = [_reported_value(launch, description.fact) for launch in launches]
        known_values = [value for value in values if value is not None]
        if known_values:
            reduce = REDUCTIONS[description.launches]  # for example `max`
            reduced[field] = reduce(known_values)
    return reduced


def _reported_value(launch: LaunchRecord, path: str) -> Any:
    """Return the value of the fact at `path`, such as `executable.peak_bytes`; None if the launch did not report it."""
    value: Any = launch.facts
    for name in path.split("."):
        value = value_or_none(getattr(value, name))
        if value is None:
            return None
    return value


def worst_parity(launches: Sequence[LaunchRecord]) -> float | None:
    """Return the largest ratio of an output's error to its tolerance in all launches; None if none was compared."""
    ratios = [launch.parity.worst_ratio for launch in launches if launch.parity]
    return min(max(ratios), LARGEST_RATIO) if ratios else None


def unit_cost(
    case: Case, launches: Sequence[LaunchRecord], all_launches: Sequence[LaunchRecord], seconds: float
) -> UnitCost:
    """Return the energy, price and rates of a unit of work that takes `seconds`, without those that are unknown.

    If the case has arrivals, a unit is a request. Its rates are computed from its service time. Its price and energy
    are computed from the time between two arrivals, because the device is reserved for all of that time.

    `launches` are the variant's launches, at least one; `all_launches` are those of all variants of the case.
    """
    arrivals = case.measurement.arrivals
    if arrivals is not None:
        # A launch without service times counts with the variant's time.
        service_seconds = [launch.service_seconds() or seconds for launch in launches]
        seconds = geometric_mean(service_seconds)
    occupied_seconds = 1 / arrivals.rate_per_second if arrivals is not None else seconds
    numbers = unit_joules(launches, occupied_seconds) | unit_price(case, occupied_seconds)
    limits = device_roof(case, all_launches)
    limit_numbers = {
        "limit_flops_per_second": limits.flops_per_second,
        "limit_bytes_per_second": limits.bytes_per_second,
    }
    numbers |= {name: value for name, value in limit_numbers.items() if value}
    work = work_per_unit(launches[0])  # the same in every launch of the variant
    if work is None:
        return UnitCost(numbers, limits=limits.source)
    flops, bytes_moved = work
    from_memory = works_from_memory(launches[0])
    point = roofline_point(seconds, flops, bytes_moved, limits, from_memory=bool(from_memory))
    # If the cache's size is unknown, the bytes may come from the cache or from memory.
    bound_is_unknown = from_memory is None and bytes_moved > 0
    roofline_numbers = {
        "flops_per_unit": flops,
        "bytes_per_unit": bytes_moved,
        "flops_per_second": point.flops_per_second,
        "bytes_per_second": point.bytes_per_second,
        "intensity": point.intensity,
        "share_of_limit": None if bound_is_unknown else point.share,
    }
    # A number that is None or 0 is unknown or does not apply.
    numbers |= {name: value for name, value in roofline_numbers.items() if value}
    return UnitCost(numbers, None if bound_is_unknown else point.bound, limits.source)


def request_numbers(case: Case, launches: Sequence[LaunchRecord]) -> dict[str, Any]:
    """Return the 99th percentile of calls or requests, and how requests were served, by field of `Numbers`.

    Empty for protocols that do not time calls one by one. `launches` are the variant's launches, at least one.
    """
    if not all(has_tail(launch.protocol) for launch in launches):
        return {}

    def mean_over_launches(seconds: Callable[[LaunchRecord], float | None]) -> float:
        """Return the geometric mean over launches, as for the variant's time, without launches of unknown seconds."""
        return geometric_mean(filter(None, map(seconds, launches)))

    numbers: dict[str, Any] = {"p99_seconds": mean_over_launches(lambda launch: launch.seconds("p99"))}
    arrivals = case.measurement.arrivals
    if arrivals is None:
        return numbers
    return numbers | {
        "requests_per_second": arrivals.rate_per_second,
        "service_seconds": mean_over_launches(lambda launch: launch.service_seconds()),
        "service_p99_seconds": mean_over_launches(lambda launch: launch.service_seconds(99)),
        "utilisation": utilisation(launches, arrivals.rate_per_second),
    }


def unit_price(case: Case, seconds: float) -> dict[str, float]:
    """Return the price of a unit of work that takes `seconds`, by field of `Numbers`; empty without a price."""
    price_per_second = case.accelerator.price_per_second
    return {} if price_per_second is None else {"price_per_unit": price_per_second * seconds}


def unit_joules(launches: Sequence[LaunchRecord], seconds: float) -> dict[str, float]:
    """Return the joules of a unit of work that takes `seconds`, by field of `Numbers`; empty if no launch measured any.

    The scope of the measurement, the device or the CPUs, decides the field.
    """
    readings = [launch.facts.energy for launch in launches if not isinstance(launch.facts.energy, Unreadable)]
    if not readings:
        return {}
    watts = statistics.median(reading.joules / reading.seconds for reading in readings)
    return {ENERGY[readings[0].scope]: watts * seconds}
