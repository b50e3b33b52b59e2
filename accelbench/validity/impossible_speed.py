"""Check that nothing ran faster than its device can: a higher rate reveals declared work that was not done."""

import math
from collections.abc import Iterable, Iterator

from accelbench.api.result import LimitsSource
from accelbench.figures import quantity
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, passed, untested
from accelbench.validity.evidence import Evidence
from accelbench.validity.roofline import (
    CACHE_MULTIPLE,
    DeclaredWork,
    Roof,
    device_roof,
    work_per_unit,
    works_from_memory,
)

MAXIMUM_MULTIPLE: dict[LimitsSource, float] = {"data-sheet": 1.02, "measured": 1.5}
"""Maximum rate as a multiple of the limit, by the limit's source. Nothing is faster than its data sheet, except for the
rounding of clocks. A matrix product and a stream triad reach at least two thirds of what the processor can, unless the
framework has a defect."""
MINIMUM_LAUNCHES = 2
"""Minimum number of launches that must have measured a limit before a variant can fail. One launch may measure a slow
processor that is fast again a moment later (next to another program PyTorch's products reached 199 of 486 GFLOP/s on
two cores)."""
WINOGRAD_FACTOR = 4
"""Convolutions may seem to run this many times as fast: the workload declares the FLOPs of the direct method, of which
F(4x4, 3x3) needs a fourth (A. Lavin and S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR 2016)."""


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail a variant if its fastest launch exceeds the device's limits; untested without limits, time or cost."""
    # Quarantined launches measured the device's limits too.
    roof = device_roof(evidence.case, (*evidence.launches, *evidence.quarantined))
    for variant in evidence.variants:
        timed_launches = [launch for launch in evidence.launches_of(variant) if launch.seconds()]
        if roof.source is None:
            yield variant, untested(_why_no_limits(evidence.launches))
        elif not timed_launches:
            yield variant, untested("no launch has a time")
        elif work_per_unit(timed_launches[0]) is None:
            yield variant, untested("the workload declares neither operations nor bytes")
        else:
            yield variant, _judge_fastest(timed_launches, roof, roof.source)


def _why_no_limits(launches: Iterable[LaunchRecord]) -> str | Unreadable:
    """Return why the device's limits are unknown: accelbench's probe failed, or no launch measured them."""
    for launch in launches:
        limits = launch.facts.limits
        if isinstance(limits, Unreadable) and limits.probe_failed:
            return limits
    return "the device's limits are neither published nor measured"


def _judge_fastest(timed_launches: list[LaunchRecord], roof: Roof, source: LimitsSource) -> Finding:
    """Fail if the fastest launch does its declared work at more FLOP/s or bytes/s than the device can reach.

    `roof` has the device's limits, which come from `source`. Untested if there is no rate to compare, or if a single
    launch measured the limit that is exceeded.
    """
    fastest = min(timed_launches, key=_seconds)
    seconds = _seconds(fastest)
    # All launches of a variant declare the same work, and the first one declares some; `or` is for the type checker.
    flops, bytes_moved = work_per_unit(fastest) or DeclaredWork(0.0, 0.0)
    multiple = MAXIMUM_MULTIPLE[source]
    # Winograd's algorithm computes a convolution with a fourth of the declared FLOPs.
    convolution_factor = WINOGRAD_FACTOR if _has_convolutions(fastest) else 1
    readings: list[str] = []
    too_fast = False
    if flops and roof.flops_per_second:
        too_fast |= flops / seconds > convolution_factor * multiple * roof.flops_per_second
        rate, limit = quantity(flops / seconds, "FLOP/s"), quantity(roof.flops_per_second, "FLOP/s")
        readings.append(f"{rate}, where the device reaches {limit}")
    if bytes_moved and roof.bytes_per_second and works_from_memory(fastest):
        too_fast |= bytes_moved / seconds > multiple * roof.bytes_per_second
        rate, limit = quantity(bytes_moved / seconds, "B/s"), quantity(roof.bytes_per_second, "B/s")
        readings.append(f"{rate}, where the device reaches {limit}")
    if not readings:
        return untested("it has no operations to count, and its working set may fit in a cache")
    reading = f"{', '.join(readings)} ({source.replace('-', ' ')})"
    if not too_fast:
        return passed(reading)
    if source == "measured" and roof.launches < MINIMUM_LAUNCHES:
        return untested(f"{reading}: only one launch measured that limit, which may be too low")
    return failed(f"round {fastest.round}: {reading}: the program skips work, or the workload declares too much")


def _seconds(launch: LaunchRecord) -> float:
    """Return the seconds per unit of work, without waiting in a queue, or infinity without times."""
    return launch.service_seconds() or math.inf


def _has_convolutions(launch: LaunchRecord) -> bool:
    """Return True if the workload declares convolutions."""
    operations = launch.facts.operations
    return not isinstance(operations, Unreadable) and operations.declared.convolutions > 0


CHECK = CaseCheck(
    name="impossible-speed",
    threshold=(
        f"at most {MAXIMUM_MULTIPLE['data-sheet']:g} times the data sheet, or {MAXIMUM_MULTIPLE['measured']:g} times "
        f"the limit measured by {MINIMUM_LAUNCHES} launches or more; {WINOGRAD_FACTOR} times that for convolutions; "
        f"bytes count if the working set exceeds {CACHE_MULTIPLE} caches"
    ),
    reason="if a compiler hoists or drops work, a step seems to run many times as fast as the device can",
    evaluate=_evaluate,
    measured_only=True,
    remedy=(
        "look for work that the program leaves out, and compare what cost() and operations() declare with what a unit "
        "of work needs"
    ),
)
