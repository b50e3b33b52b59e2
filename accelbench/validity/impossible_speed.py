"""Check that nothing ran faster than its device can: a higher rate reveals declared work that was not done."""

from collections.abc import Iterable, Iterator

from accelbench.api.result import LimitsSource
from accelbench.figures import quantity
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Evidence
from accelbench.validity.roofline import CACHE_MULTIPLE, Roof, roof, work_per_unit, works_from_memory

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


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    """Yield a finding for each variant, by its fastest launch; untested without limits or a declared cost."""
    limits = roof(evidence.case, (*evidence.launches, *evidence.quarantined))
    for variant in evidence.variants:
        launches = [launch for launch in evidence.launches_of(variant) if launch.seconds()]
        if limits.source is None:
            yield variant, untested(_why_no_limits(evidence.launches))
        elif not launches or work_per_unit(launches[0]) is None:
            yield variant, untested("the workload declares neither operations nor bytes")
        else:
            yield variant, _judge_fastest(launches, limits)


def _why_no_limits(launches: Iterable[LaunchRecord]) -> str | Unreadable:
    """Return why the limits are unknown: the failure of accelbench's own probe, if it failed."""
    limits = (launch.facts.limits for launch in launches)
    failures = (limit for limit in limits if isinstance(limit, Unreadable) and limit.probe_failed)
    return next(failures, "the device's limits are neither published nor measured")


def _judge_fastest(launches: list[LaunchRecord], limits: Roof) -> Finding:
    """Compare the rates of the fastest launch with the limits.

    Bytes are compared only if they come from memory. A limit that too few launches measured fails nothing.
    """
    fastest = min(launches, key=lambda launch: launch.seconds() or float("inf"))
    seconds = fastest.seconds() or float("inf")
    flops, moved = work_per_unit(fastest) or (0.0, 0.0)
    source: LimitsSource = limits.source or "measured"
    multiple = MAXIMUM_MULTIPLE[source]
    direct_over_actual = WINOGRAD_FACTOR if _has_convolutions(fastest) else 1
    readings, too_fast = [], False
    if flops and limits.flops_per_second:
        too_fast |= flops / seconds > direct_over_actual * multiple * limits.flops_per_second
        rate, limit = quantity(flops / seconds, "FLOP/s"), quantity(limits.flops_per_second, "FLOP/s")
        readings.append(f"{rate}, where the device reaches {limit}")
    if moved and limits.bytes_per_second and works_from_memory(fastest):
        too_fast |= moved / seconds > multiple * limits.bytes_per_second
        rate, limit = quantity(moved / seconds, "B/s"), quantity(limits.bytes_per_second, "B/s")
        readings.append(f"{rate}, where the device reaches {limit}")
    if not readings:
        return untested("it has no operations to count, and its working set may fit in a cache")
    reading = f"{', '.join(readings)} ({source.replace('-', ' ')})"
    if too_fast and limits.source == "measured" and limits.launches < MINIMUM_LAUNCHES:
        return untested(f"{reading}: only one launch measured that limit, which may be too low")
    if too_fast:
        return failed(f"round {fastest.round}: {reading}: the program skips work, or the workload declares too much")
    return passed(reading)


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
)
