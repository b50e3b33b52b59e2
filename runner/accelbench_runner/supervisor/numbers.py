"""The numbers of a variant: what its launches report, reduced to one each, and what is calculated from them. Pure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from accelbench.api.case import Case
from accelbench.api.numbers import MEASURED, Numbers, Reduction
from accelbench.api.result import Bound, LimitsSource
from accelbench.document import DecimalString, decimal_string
from accelbench.launch.fact import Unreadable, known
from accelbench.launch.facts import EnergyScope
from accelbench.launch.record import LaunchRecord
from accelbench.validity.roofline import place, roof, work_per_unit, works_from_memory

LARGEST_RATIO = 1e15
"""An error that no tolerance allows is a number all the same."""
REDUCTIONS: Mapping[Reduction, Callable[[Sequence[int]], int | None]] = {
    "agreed": lambda values: values[0] if len(set(values)) == 1 else None,
    "most": max,
    "fewest": min,
    "first": lambda values: values[0],
}
ENERGY: Mapping[EnergyScope, str] = {"device": "device_joules_per_unit", "processors": "cpu_joules_per_unit"}


@dataclass(frozen=True)
class Roofline:
    """A variant under the roofline: its numbers by field, and what they were held against."""

    numbers: Mapping[str, DecimalString | None]
    bound: Bound | None = None
    limits: LimitsSource | None = None


def reported(launches: Sequence[LaunchRecord]) -> Numbers:
    """What the launches of a variant report, whether they time anything or not."""
    told = {
        name: [value for launch in launches if (value := _fact(launch, number.fact)) is not None]
        for name, number in MEASURED.items()
        if number.fact
    }
    return Numbers(**{name: REDUCTIONS[MEASURED[name].launches](values) for name, values in told.items() if values})


def _fact(launch: LaunchRecord, path: str) -> Any:
    """None where the launch did not report it, or what it is inside."""
    found: Any = launch.facts
    for name in path.split("."):
        found = known(getattr(found, name))
        if found is None:
            return None
    return found


def worst_parity(launches: Sequence[LaunchRecord]) -> DecimalString | None:
    """Over all launches that were compared."""
    ratios = [launch.parity.worst_ratio for launch in launches if launch.parity]
    return decimal_string(min(max(ratios), LARGEST_RATIO)) if ratios else None


def cost(case: Case, launches: Sequence[LaunchRecord], everyone: Sequence[LaunchRecord], seconds: float) -> Roofline:
    """Of one variant, by its `launches`, at `seconds` a unit; limits come from `everyone`, all launches of the case."""
    spent = joules(launches, seconds) | price(case, seconds)
    work = work_per_unit(launches[0])
    if work is None:
        return Roofline(spent)
    flops, moved = work
    limits = roof(case, everyone)
    from_memory = works_from_memory(launches[0])
    placed = place(seconds, flops, moved, limits, from_memory=bool(from_memory))
    unknown = from_memory is None and moved
    told = {
        "flops_per_unit": flops,
        "bytes_per_unit": moved,
        "flops_per_second": placed.flops_per_second,
        "bytes_per_second": placed.bytes_per_second,
        "intensity": placed.intensity,
        "share_of_limit": None if unknown else placed.share,
        "limit_flops_per_second": limits.flops_per_second,
        "limit_bytes_per_second": limits.bytes_per_second,
    }
    numbers = {name: decimal_string(value) for name, value in told.items() if value}
    return Roofline(spent | numbers, None if unknown else placed.bound, limits.source)


def price(case: Case, seconds: float) -> dict[str, DecimalString]:
    """What a unit costs, in the currency of the case's price; empty where it has none."""
    per_second = case.accelerator.price_per_second
    return {} if per_second is None else {"price_per_unit": decimal_string(per_second * seconds)}


def joules(launches: Sequence[LaunchRecord], seconds: float) -> dict[str, DecimalString]:
    """What a unit takes, by the field that it is the number of; the first launch says who counts."""
    told = [launch.facts.energy for launch in launches]
    spent = [each for each in told if not isinstance(each, Unreadable)]
    if not spent:
        return {}
    watts = statistics.median(each.joules / each.seconds for each in spent)
    return {ENERGY[spent[0].scope]: decimal_string(watts * seconds)}
