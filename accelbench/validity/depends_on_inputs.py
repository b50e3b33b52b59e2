"""A step works on its arguments: on inputs that it has not seen, its outputs follow them.

A step that closes over an array is right as long as it is asked about that array alone, and a compiler takes what is
closed over for a constant, which it may compute with once and for all.

How exactly a step computes, `parity` has asked, on inputs that stay the same. These are other ones in every case. Where
a computation chooses (relu, max-pool, the sign of Adam's first step), some of them lie at a kink, and a correct program
may then choose otherwise than the reference: docs/method/unseen-inputs.md.
"""

from collections.abc import Mapping

from accelbench.api.case import Case, Precision
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import MISMATCH, LaunchRecord, UnseenReading
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested

TOLERANCES: Mapping[Precision, float] = {"float64": 16, "float32": 16, "tf32": 1.5, "bfloat16": 1.5, "float16": 1.5}
"""Error allowed, in those of parity. Of 80 trainings of a CNN in float32, all correct, four were off by up to 6.6; of 8
of a decoder in bfloat16, two by up to 1.2. What does not read its inputs is off by the size of its outputs. By the
spreads that parity's factors were chosen by, that is 300 or more in float32, and 2 or more in bfloat16."""


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
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
    finding = _compared(unseen, TOLERANCES[case.measurement.precision])
    return Finding(finding.outcome, finding.reading + captured)


def _right_where_seen(launch: LaunchRecord) -> bool:
    """Its outputs are right on the inputs that it was built from: then others tell something."""
    return launch.parity is not None and launch.parity.finite and launch.parity.worst_ratio <= 1


def _compared(unseen: UnseenReading, allowed: float) -> Finding:
    reading = unseen.reading
    if not (reading.finite and reading.compared):
        return untested(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio >= MISMATCH:
        return failed(f"on unseen inputs: {reading.detail}")
    if reading.worst_ratio > allowed:
        return failed(f"wrong on unseen inputs, by {reading.worst_ratio:.2g} times the tolerance (limit {allowed:g})")
    if not unseen.changes:
        return untested("other inputs give the same outputs: nothing shows that inputs are read")
    off = f"{reading.worst_ratio:.2g}"
    if reading.worst_ratio > 1:
        return passed(f"{off} times the tolerance on unseen inputs (limit {allowed:g}): a choice may differ there")
    return passed(f"{off} of the tolerance on unseen inputs")


CHECK = LaunchCheck(
    name="depends-on-inputs",
    threshold="on inputs that the program was not built from, error at most 16 tolerances; 1.5 in narrow types",
    reason="a step that closed over its starting array was once certified as 5 times as fast",
    evaluate=_evaluate,
    always=True,
    of=lambda facts: facts.dependence,
)
