"""The work is there: compilers hoist it out of loops, fold it into constants, and drop what nobody returns.

Where the workload declares its least number of products and convolutions, these are counted. Elsewhere floating-point
operations are: in the program as it was written, in what is left of it, and in the other variants.
"""

from collections.abc import Iterator

from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested, worst
from accelbench.validity.evidence import (
    Arithmetic,
    Counts,
    Evidence,
    Launch,
    Operations,
    PositiveFloat,
    Unreadable,
    fact,
)

UNCOUNTED = "the workload declares no operations, and what runs cannot be counted"
LEAST_LEFT = 0.4
"""Of what was written: of programs in the catalogue compilers leave 52 % or more, of a hoisted loop a few."""
LEAST_SHARE = 0.1
"""Of what cost() says, or of another variant's count: by what one is called an operation they differ up to so much."""


def _look(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    most = max(((_run(launch) or 0.0, launch.variant) for launch in evidence.launches), default=(0.0, ""))
    for variant in evidence.variants:
        told = [launch for launch in evidence.of(variant) if {"operations", "arithmetic"} & launch.facts.keys()]
        findings = [(launch.round, _of(launch, *most)) for launch in told]
        yield variant, worst(findings) if findings else untested(UNCOUNTED)


def _of(launch: Launch, most: float, whose: str) -> Finding:
    if "operations" in launch.facts:
        return _declared(launch)
    arithmetic = fact(launch, "arithmetic", Arithmetic)
    if isinstance(arithmetic, Unreadable) or arithmetic.run is None:
        return untested(UNCOUNTED)
    run, written = arithmetic.run, arithmetic.written
    reading = f"{run:.3g} floating-point operations in a call, in {arithmetic.source}"
    if written and run < LEAST_LEFT * written:
        return failed(f"{reading}, of {written:.3g} written: the compiler dropped or hoisted the rest")
    flops, units = fact(launch, "flopsPerUnit", PositiveFloat), fact(launch, "unitsPerCall", PositiveFloat)
    if not isinstance(flops, Unreadable) and not isinstance(units, Unreadable) and run < LEAST_SHARE * flops * units:
        return untested(f"{reading}, of {flops * units:.3g} by cost(): a better algorithm, or work left out")
    if run < LEAST_SHARE * most:
        return untested(f"{reading}, of {most:.3g} in {whose}: a better algorithm, or work left out")
    return passed(reading)


def _run(launch: Launch) -> float | None:
    arithmetic = fact(launch, "arithmetic", Arithmetic)
    return None if isinstance(arithmetic, Unreadable) else arithmetic.run


def _declared(launch: Launch) -> Finding:
    operations = fact(launch, "operations", Operations)
    if isinstance(operations, Unreadable):
        return failed(operations)
    declared, found = operations.declared, operations.found
    if found is None:
        return untested(f"what is left of {_counts(declared)} cannot be counted")
    reading = f"{_counts(found)} of {_counts(declared)} in {operations.source}"
    missing = found.products < declared.products or found.convolutions < declared.convolutions
    return failed(reading) if missing else passed(reading)


def _counts(counts: Counts) -> str:
    kinds = {"products": counts.products, "convolutions": counts.convolutions}
    return " and ".join(f"{number} {kind}" for kind, number in kinds.items() if number) or "none"


CHECK = CaseCheck(
    name="work-present",
    threshold=(
        f"at least the operations that the workload declares for one call, or where it declares none {LEAST_LEFT:.0%} "
        "of those written"
    ),
    reason="a scan of 200 identical products took the time of four, and a product of constants none at all",
    look=_look,
)
