"""Check that outputs have infinity only where the reference has it, and NaN only if the workload declares it."""

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the outputs contain unexpected NaN or infinity, or were not checked."""
    if launch.parity is None:
        return failed("its outputs were not checked")
    if launch.parity.finite:
        return passed("as the reference")
    return failed("; ".join(filter(None, (launch.parity.detail, launch.parity.diagnosis))))


CHECK = LaunchCheck(
    name="non-finite",
    threshold="infinity only where the reference has it, NaN only where the workload declares it",
    reason="arithmetic on special values can take more or less time than the workload's own",
    evaluate=_evaluate,
    remedy=(
        "look for an overflow or a division by zero in the variant's code, or use smaller parameters; declare NaN that "
        'belongs there: measure = {"non_finite": "the reason"} in a script, Measure(non_finite="the reason") in a class'
    ),
    include_quarantined=True,
)
