"""Check that outputs have NaN and infinity only where the workload declares them: they change the time."""

from accelbench.api.case import Case
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the outputs contain unexpected NaN or infinity."""
    if launch.parity is None:
        return failed("its outputs were not checked")
    return passed("as the reference") if launch.parity.finite else failed(launch.parity.detail)


CHECK = LaunchCheck(
    name="non-finite",
    threshold="NaN and infinity only where the workload declares them",
    reason="arithmetic on special values can take more or less time than the workload's own",
    evaluate=_evaluate,
    remedy="look for an overflow or a division by zero in the variant's code, or use smaller parameters",
    include_quarantined=True,
)
