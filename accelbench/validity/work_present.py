"""The work is there: compilers hoist it out of loops, fold it into constants, and drop what nobody returns.

Where the workload declares its least number of products and convolutions, these are counted. Elsewhere floating-point
operations are: in the program as it was written, in what is left of it, and in the other variants.
"""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.facts import OperationCounts
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import CaseCheck, Finding, failed, passed, percent, untested, worst
from accelbench.validity.evidence import Evidence

UNCOUNTED = "the workload declares no operations, and what runs cannot be counted"
LEAST_LEFT = 0.4
"""Of what was written: of programs in the catalogue compilers leave 52 % or more, of a hoisted loop a few."""
LEAST_SHARE = 0.15
"""Of what cost() says, or of another variant's count: by what one is called an operation they differ up to so much."""
MOST_TIMES = 2.5
"""What another variant's count is."""
MOST_IDLE = 0.5
"""Of the blocks' time; a thread that waits for its turn on a crowded machine is not idle."""


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    counts = [(run, launch.variant) for launch in evidence.launches if (run := _run(launch))]
    most, least = max(counts, default=(0.0, "")), min(counts, default=(0.0, ""))
    for variant in evidence.variants:
        told = [
            launch
            for launch in evidence.of(variant)
            if is_reported(launch.facts.operations) or is_reported(launch.facts.arithmetic)
        ]
        findings = [(launch.round, _of(launch, most, least)) for launch in told] or [(0, untested(UNCOUNTED))]
        doubts = [
            (launch.round, untested(said))
            for launch in evidence.of(variant)
            for said in (_waits(launch), _claims(launch))
            if said
        ]
        yield variant, worst(findings + doubts) if told or doubts else untested(UNCOUNTED)


def _of(launch: LaunchRecord, most: tuple[float, str], least: tuple[float, str]) -> Finding:
    if is_reported(launch.facts.operations):
        return _declared(launch)
    arithmetic, per_unit = launch.facts.arithmetic, _run(launch)
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None or per_unit is None:
        return untested(UNCOUNTED)
    reading = f"{arithmetic.run:.3g} floating-point operations in a call, in {arithmetic.source}"
    if arithmetic.written and arithmetic.run < LEAST_LEFT * arithmetic.written:
        return failed(f"{reading}, of {arithmetic.written:.3g} written: the compiler dropped or hoisted the rest")
    doubt = _doubt(per_unit, launch.facts.flops_per_unit, most, least)
    return untested(f"{reading}, {doubt}") if doubt else passed(reading)


def _doubt(run: float, flops: float | Unreadable, most: tuple[float, str], least: tuple[float, str]) -> str:
    """How far the operations of a unit are from what cost() says, or from another variant's."""
    if not isinstance(flops, Unreadable) and run < LEAST_SHARE * flops:
        return f"{percent(run / flops)} of what cost() says: a better algorithm, or work left out"
    if run < LEAST_SHARE * most[0]:
        return f"{percent(run / most[0])} of {most[1]}'s: a better algorithm, or work left out"
    if run > MOST_TIMES * least[0] > 0:
        return f"{run / least[0]:.2g} times {least[1]}'s: a worse algorithm, or work that need not be done"
    return ""


def _waits(launch: LaunchRecord) -> str:
    """What is said of blocks in which hardly anything was computed: sleeping, or waiting for others."""
    idle = launch.facts.idle
    if isinstance(idle, Unreadable) or idle.busy_seconds >= (1 - MOST_IDLE) * idle.seconds:
        return ""
    share = percent(1 - idle.busy_seconds / idle.seconds)
    return f"idle for {share} of the time: it sleeps, or waits for what others do"


def _claims(launch: LaunchRecord) -> str:
    """What is said of a step that claims several units, of which neither outputs nor declared operations tell."""
    units = launch.facts.units_per_step
    if isinstance(units, Unreadable) or units == 1 or is_reported(launch.facts.operations):
        return ""
    if launch.parity is None or launch.parity.counts_units:
        return ""
    return f"a step claims to do {units} units, and half as many give the same outputs"


def _run(launch: LaunchRecord) -> float | None:
    """In a unit of work."""
    arithmetic, units = launch.facts.arithmetic, launch.facts.units_per_call
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None or isinstance(units, Unreadable):
        return None
    return arithmetic.run / units


def _declared(launch: LaunchRecord) -> Finding:
    operations = launch.facts.operations
    if isinstance(operations, Unreadable):
        return failed(operations)
    declared, found = operations.declared, operations.found
    if found is None:
        return untested(f"what is left of {_counts(declared)} cannot be counted")
    reading = f"{_counts(found)} of {_counts(declared)} in {operations.source}"
    missing = found.products < declared.products or found.convolutions < declared.convolutions
    return failed(reading) if missing else passed(reading)


def _counts(counts: OperationCounts) -> str:
    kinds = {"products": counts.products, "convolutions": counts.convolutions}
    return " and ".join(f"{number} {kind}" for kind, number in kinds.items() if number) or "none"


CHECK = CaseCheck(
    name="work-present",
    threshold=(
        f"at least the operations that the workload declares for one call, or where it declares none {LEAST_LEFT:.0%} "
        f"of those written, {LEAST_SHARE:.0%} of cost() and another variant's, and at most {MOST_TIMES:g} times these; "
        "a step that claims several units has outputs that tell how many it did"
    ),
    reason="a scan of 200 identical products took the time of four, and a product of constants took none",
    evaluate=_evaluate,
)
