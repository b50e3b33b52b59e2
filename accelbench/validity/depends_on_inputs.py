"""A step works on its arguments: on inputs that it has not seen, its outputs are right as well.

A step that closes over an array is right as long as it is asked about that array alone, and a compiler takes what is
closed over for a constant, which it may compute with once and for all.
"""

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import MISMATCH, LaunchRecord, UnseenReading
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    found = launch.facts.dependence
    if isinstance(found, Unreadable):
        return failed(found)
    captured = f"; captured: {', '.join(found.captured)}" if found.captured else ""
    if found.raised:
        return failed(f"it raises on inputs that it was not built from: {found.raised}{captured}")
    unseen = launch.parity.unseen if launch.parity else None
    if found.unable or unseen is None:
        return untested(found.unable or "its outputs on other inputs were not compared")
    if not _right_where_seen(launch):
        return untested(f"its outputs are wrong on the inputs that it was built from{captured}")
    finding = _compared(unseen)
    return Finding(finding.outcome, finding.reading + captured)


def _right_where_seen(launch: LaunchRecord) -> bool:
    """Its outputs are right on the inputs that it was built from: then others tell something."""
    return launch.parity is not None and launch.parity.finite and launch.parity.worst_ratio <= 1


def _compared(unseen: UnseenReading) -> Finding:
    reading = unseen.reading
    if not (reading.finite and reading.compared):
        return untested(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio >= MISMATCH:
        return failed(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio > 1:
        return failed(f"wrong on unseen inputs, by {reading.worst_ratio:.2g} times the tolerance")
    if not unseen.changes:
        return untested("other inputs give the same outputs: nothing shows that inputs are read")
    return passed(f"{reading.worst_ratio:.2g} of the tolerance on unseen inputs")


CHECK = LaunchCheck(
    name="depends-on-inputs",
    threshold="on inputs that the program was not built from, error at most the tolerance",
    reason="a step that closed over its starting array was once certified as 5 times as fast",
    evaluate=_evaluate,
    always=True,
    of=lambda facts: facts.dependence,
)
