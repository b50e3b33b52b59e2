"""Check that every variant computes the same thing: its outputs agree with the float64 reference."""

from accelbench import figures
from accelbench.api.case import Case
from accelbench.launch.record import MISMATCH, LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if an output differs from the reference by more than its tolerance."""
    if launch.parity is None:
        return failed("its outputs were not compared with the reference")
    if not launch.parity.finite:
        return untested(f"cannot be compared: {launch.parity.detail}")
    if not launch.parity.compared:
        return untested(launch.parity.detail)
    if launch.parity.worst_ratio >= MISMATCH:  # no tolerance allows it, such as a wrong shape
        return failed(launch.parity.detail)
    ratio = launch.parity.worst_ratio
    if ratio <= 1:
        return _judge_agreement(case, launch, f"{launch.parity.detail}, {ratio:.2g} of the tolerance")
    return failed(f"{launch.parity.detail}, {figures.prose(ratio)} times the tolerance")


def _judge_agreement(case: Case, launch: LaunchRecord, reading: str) -> Finding:
    """Judge outputs within the tolerance by how the reference was computed."""
    if launch.parity and launch.parity.own_program:  # it replaces a missing reference
        return passed(f"{reading}; the reference is {launch.parity.own_program}'s own program in float64 on the CPU")
    use = next(variant.use for variant in case.variants if variant.name == launch.variant)
    framework, _, _ = use.partition("/")
    if launch.parity and framework in launch.parity.reference_frameworks:
        return untested(f"the reference is computed with {framework} too and may have the same mistake: use NumPy")
    return passed(reading)


CHECK = LaunchCheck(
    name="parity",
    threshold="error at most the tolerance",
    reason=(
        "the tolerance is how much the outputs change if the inputs change by one unit in the last place, "
        "times a factor for rounding: accelbench_runner.judge.reference"
    ),
    evaluate=_evaluate,
    remedy="compare the variant's formula with the workload's reference; accelbench check FILE tests it in a minute",
    include_quarantined=True,
)
