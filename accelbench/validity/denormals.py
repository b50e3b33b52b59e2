"""Check that all launches treat denormal numbers alike: all flush them to zero, or none does."""

from collections.abc import Iterator

from accelbench.launch.fact import Unreadable
from accelbench.validity.check import CaseCheck, VariantFinding, passed, untested
from accelbench.validity.evidence import Evidence


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Pass if all launches flush denormal numbers to zero, or all keep them; else the check is untested.

    The finding is on all variants together, so its variant is None.
    """
    flushing_variants: list[str] = []
    keeping_variants: list[str] = []
    for launch in evidence.launches:
        precision = launch.facts.precision
        if isinstance(precision, Unreadable) or precision.flush_denormal is None:
            yield None, untested(f"{launch.variant} did not report it")
            return
        variants = flushing_variants if precision.flush_denormal else keeping_variants
        if launch.variant not in variants:
            variants.append(launch.variant)
    if flushing_variants and keeping_variants:
        sides = f"{', '.join(flushing_variants)} flushed them, {', '.join(keeping_variants)} did not"
        yield None, untested(f"{sides}: a difference where numbers get as small as 1e-38")
    elif flushing_variants:
        yield None, passed("flushed to zero by all")
    elif keeping_variants:
        yield None, passed("kept by all")


CHECK = CaseCheck(
    name="denormals",
    threshold="all variants alike",
    reason="arithmetic on denormals is 20 times slower on some processors; untested, because a workload may have none",
    evaluate=_evaluate,
)
