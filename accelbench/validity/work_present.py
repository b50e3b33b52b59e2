"""Check that the work is done: compilers hoist it out of loops, fold constants and drop unused results.

If the workload declares its minimum of products and convolutions, these are counted. Otherwise floating-point
operations are counted: in the program as written, in the optimised program, and in the other variants.
"""

from collections.abc import Iterator
from typing import NamedTuple

from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.facts import OperationCounts
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, failed, most_severe, passed, percent, untested
from accelbench.validity.evidence import Evidence

UNCOUNTED = "the workload declares no operations, and those that run cannot be counted"
MINIMUM_LEFT_SHARE = 0.4
"""Minimum share of the written operations that must be left after optimisation. Compilers leave 52 % or more of the
catalogue's programs, and a few per cent of a hoisted loop."""
MINIMUM_COUNT_SHARE = 0.15
"""Minimum operations as a share of cost(), or of another variant's count; frameworks count differently."""
MAXIMUM_COUNT_MULTIPLE = 2.5
"""Maximum operations as a multiple of another variant's count."""
MAXIMUM_IDLE_SHARE = 0.5
"""Maximum idle share of the blocks' time. A thread that waits for a processor on a busy machine is not idle."""


class _Count(NamedTuple):
    """Hold the floating-point operations that a variant runs for a unit of work."""

    operations: float
    variant: str


_NO_COUNT = _Count(0.0, "")


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    """Judge each variant's operations, idle time and claimed units of work."""
    counts = []
    for launch in evidence.launches:
        operations = _operations_per_unit(launch)
        if operations:
            counts.append(_Count(operations, launch.variant))
    most = max(counts, default=_NO_COUNT)
    fewest = min(counts, default=_NO_COUNT)
    for variant in evidence.variants:
        findings: list[tuple[int, Finding]] = []
        doubts: list[tuple[int, Finding]] = []
        for launch in evidence.launches_of(variant):
            if is_reported(launch.facts.operations) or is_reported(launch.facts.arithmetic):
                findings.append((launch.round, _judge_operations(launch, most, fewest)))
            texts = (_idle_doubt(launch), _unit_doubt(launch))
            doubts += [(launch.round, untested(text)) for text in texts if text]
        found = findings + doubts
        yield variant, most_severe(found) if found else untested(UNCOUNTED)


def _judge_operations(launch: LaunchRecord, most: _Count, fewest: _Count) -> Finding:
    """Judge whether a launch runs all operations of its program."""
    if is_reported(launch.facts.operations):
        return _judge_declared(launch)
    arithmetic, operations = launch.facts.arithmetic, _operations_per_unit(launch)
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None or operations is None:
        return untested(UNCOUNTED)
    reading = f"{arithmetic.run:.3g} floating-point operations in a call, in {arithmetic.source}"
    if arithmetic.written and arithmetic.run < MINIMUM_LEFT_SHARE * arithmetic.written:
        return failed(f"{reading}, of {arithmetic.written:.3g} written: the compiler dropped or hoisted the rest")
    doubt = _count_doubt(operations, launch.facts.flops_per_unit, most, fewest)
    return untested(f"{reading}, {doubt}") if doubt else passed(reading)


def _count_doubt(operations: float, flops: float | Unreadable, most: _Count, fewest: _Count) -> str:
    """Describe a suspicious number of operations; empty if there is none.

    `most` and `fewest` are the extreme counts of all launches.
    """
    if not isinstance(flops, Unreadable) and operations < MINIMUM_COUNT_SHARE * flops:
        return f"{percent(operations / flops)} of what cost() says: a better algorithm, or work left out"
    if operations < MINIMUM_COUNT_SHARE * most.operations:
        return f"{percent(operations / most.operations)} of {most.variant}'s: a better algorithm, or work left out"
    if fewest.operations > 0 and operations > MAXIMUM_COUNT_MULTIPLE * fewest.operations:
        return f"{operations / fewest.operations:.2g} times {fewest.variant}'s: a worse algorithm, or unnecessary work"
    return ""


def _idle_doubt(launch: LaunchRecord) -> str:
    """Return a doubt if the launch was idle too long; else ""."""
    idle = launch.facts.idle
    if isinstance(idle, Unreadable) or idle.busy_seconds >= (1 - MAXIMUM_IDLE_SHARE) * idle.seconds:
        return ""
    share = percent(1 - idle.busy_seconds / idle.seconds)
    return f"idle for {share} of the time: it sleeps, or waits for other processes"


def _unit_doubt(launch: LaunchRecord) -> str:
    """Return a doubt if the outputs cannot show how many units a step did; else "".

    If operations are declared, `_judge_declared` shows it instead: it expects those of all units.
    """
    units = launch.facts.units_per_step
    if isinstance(units, Unreadable) or units == 1 or is_reported(launch.facts.operations):
        return ""
    if launch.parity is None or launch.parity.counts_units:  # then half as many units would give other outputs
        return ""
    return f"a step claims to do {units} units, and half as many give the same outputs"


def _operations_per_unit(launch: LaunchRecord) -> float | None:
    """Return the floating-point operations of a unit of work; None if unknown."""
    arithmetic, units = launch.facts.arithmetic, launch.facts.units_per_call
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None or isinstance(units, Unreadable):
        return None
    return arithmetic.run / units


def _judge_declared(launch: LaunchRecord) -> Finding:
    """Fail if fewer products or convolutions were counted than declared."""
    operations = launch.facts.operations
    if isinstance(operations, Unreadable):
        return failed(operations)
    declared, counted = operations.declared, operations.counted
    if counted is None:
        return untested(f"what is left of {_format_counts(declared)} cannot be counted")
    reading = f"{_format_counts(counted)} of {_format_counts(declared)} in {operations.source}"
    has_too_few = counted.products < declared.products or counted.convolutions < declared.convolutions
    return failed(reading) if has_too_few else passed(reading)


def _format_counts(counts: OperationCounts) -> str:
    """Format counts: `4 products and 2 convolutions`, or `none`."""
    texts = []
    if counts.products:
        texts.append(f"{counts.products} products")
    if counts.convolutions:
        texts.append(f"{counts.convolutions} convolutions")
    return " and ".join(texts) or "none"


CHECK = CaseCheck(
    name="work-present",
    threshold=(
        "at least the operations that the workload declares for one call. If it declares none: at least "
        f"{MINIMUM_LEFT_SHARE:.0%} of those written, at least {MINIMUM_COUNT_SHARE:.0%} of cost() and of another "
        f"variant's, at most {MAXIMUM_COUNT_MULTIPLE:g} times another variant's. Outputs show how many units a step "
        f"did, if it claims several. Blocks are idle for at most {MAXIMUM_IDLE_SHARE:.0%}"
    ),
    reason="a scan of 200 identical products took the time of four, and a product of constants took none",
    evaluate=_evaluate,
)
