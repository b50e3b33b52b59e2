"""What a variant's units cost: from launches' facts to the result, pure."""

import statistics
from collections.abc import Iterable, Sequence

from accelbench.api.case import Case
from accelbench.api.result import Cost, EnergySource
from accelbench.document import DecimalString, decimal_string
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.roofline import Roof, place, roof, work_per_unit, works_from_memory

NOWHERE = Roof(flops_per_second=None, bytes_per_second=None, source=None)


def cost(case: Case, launches: Sequence[LaunchRecord], everyone: Sequence[LaunchRecord], seconds: float) -> Cost | None:
    """Of one variant, by its `launches`, at `seconds` a unit; limits come from `everyone`, all launches of the case."""
    joules, source = _joules(launches, seconds)
    work = work_per_unit(launches[0])
    if work is None:
        return Cost(joules_per_unit=joules, energy_source=source) if joules else None
    flops, moved = work
    limits = roof(case, everyone) or NOWHERE
    from_memory = works_from_memory(launches[0])
    placed = place(seconds, flops, moved, limits, from_memory=bool(from_memory))
    unknown = from_memory is None and moved
    return Cost(
        flops_per_unit=_text(flops),
        bytes_per_unit=_text(moved),
        flops_per_second=_text(placed.flops_per_second),
        bytes_per_second=_text(placed.bytes_per_second),
        intensity=_text(placed.intensity),
        bound=None if unknown else placed.bound,
        share=None if unknown else _text(placed.share),
        limit_flops_per_second=_text(limits.flops_per_second),
        limit_bytes_per_second=_text(limits.bytes_per_second),
        limits=limits.source,
        joules_per_unit=joules,
        energy_source=source,
    )


def most(numbers: Iterable[int | Unreadable]) -> int | None:
    """The largest that any launch reports of a number of bytes; None where none does."""
    return max((each for each in numbers if not isinstance(each, Unreadable)), default=None)


def _joules(launches: Sequence[LaunchRecord], seconds: float) -> tuple[DecimalString | None, EnergySource | None]:
    told = [launch.facts.energy for launch in launches]
    spent = [each for each in told if not isinstance(each, Unreadable)]
    if not spent:
        return None, None
    watts = statistics.median(each.joules / each.seconds for each in spent)
    return decimal_string(watts * seconds), spent[0].source


def _text(value: float | None) -> DecimalString | None:
    return decimal_string(value) if value else None
