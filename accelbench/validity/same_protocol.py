"""Check that every launch was measured in the same way: by blocks, call by call, or in one pass."""

from collections.abc import Iterator

from accelbench.validity.check import CaseCheck, VariantFinding, failed, passed
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail for all variants (None) if launches used different protocols."""
    protocols = sorted({launch.protocol for launch in evidence.launches})
    if len(protocols) == 1:
        yield None, passed(protocols[0])
    elif protocols:
        yield None, failed(" and ".join(protocols))


CHECK = CaseCheck(
    name="same-protocol",
    threshold="one protocol in all launches",
    reason="the same step took 213 us in blocks and 280 us call by call, which synchronises after every call",
    evaluate=_evaluate,
    observed=True,
    remedy="return the same protocol from measure() in every process: it must not depend on the time or environment",
)
