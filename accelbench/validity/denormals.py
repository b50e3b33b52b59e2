"""Check that all launches treat denormal numbers alike: all flush them to zero, or none does."""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.validity.check import CaseCheck, Finding, passed, untested
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    """Pass if all launches flush denormals, or if all keep them; untested otherwise, or if one did not report it."""
    flushed: dict[bool, list[str]] = {True: [], False: []}
    for launch in evidence.launches:
        precision = launch.facts.precision
        if isinstance(precision, Unreadable) or precision.flush_denormal is None:
            yield None, untested(f"{launch.variant} did not report it")
            return
        if launch.variant not in flushed[precision.flush_denormal]:
            flushed[precision.flush_denormal].append(launch.variant)
    if flushed[True] and flushed[False]:
        sides = f"{', '.join(flushed[True])} flushed them, {', '.join(flushed[False])} did not"
        yield None, untested(f"{sides}: a difference where numbers get as small as 1e-38")
    elif evidence.launches:
        yield None, passed("flushed to zero by all" if flushed[True] else "kept by all")


CHECK = CaseCheck(
    name="denormals",
    threshold="all variants alike",
    reason="arithmetic on denormals is 20 times slower on some processors; untested, because a workload may have none",
    evaluate=_evaluate,
)
