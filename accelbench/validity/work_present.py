"""The work is there: compilers hoist it out of loops, fold it into constants, and drop what nobody returns."""

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Counts, Launch, Operations, Unreadable, fact


def _look(_case: Case, launch: Launch) -> Finding:
    if "operations" not in launch.facts:
        return untested("the workload does not declare how much there is to do")
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


CHECK = LaunchCheck(
    name="work-present",
    threshold="at least the operations that the workload declares for one call",
    reason="a scan of 200 identical products took the time of four, and a product of constants none at all",
    look=_look,
)
