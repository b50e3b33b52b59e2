"""Report that no reference can be used, and what failed: `reference()`, `canonical()` or the baseline's own program."""

from collections.abc import Iterable, Mapping

from accelbench import catalogue
from accelbench.api.case import Case, Precision
from accelbench.catalogue import script
from accelbench.launch.fact import value_or_none
from accelbench.launch.record import CANONICAL, MISMATCH, REFERENCE, LaunchRecord, ParityReading
from accelbench.validity.parity import RANDOM
from accelbench_runner.judge.canonical import CanonicalError
from accelbench_runner.judge.own_program import REMEDY


class UnrepeatableError(ValueError):
    """Report that the reference returns different outputs for the same inputs."""


class RandomOutputsError(UnrepeatableError):
    """Report that two runs of the reference on the same inputs differ in the output `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} differs between two runs on the same inputs: {RANDOM}")


class StatefulProgramError(UnrepeatableError):
    """Report that the output `name` of a baseline's own program changes after calls on other inputs."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} depends on earlier calls: a program that ran on other inputs before returns something else than "
            "one that did not. Keep no results, counter or global variable from call to call, or take the state as an "
            "array"
        )


NARROWER: Mapping[Precision, frozenset[str]] = {
    "float64": frozenset({"float32", "float16", "bfloat16"}),
    "float32": frozenset({"float16", "bfloat16"}),
    "tf32": frozenset({"float16", "bfloat16"}),
}
"""Types that are less exact than the requested precision; there are none for a narrow precision."""


def narrow_reference(case: Case, launches: Iterable[LaunchRecord], units: int) -> ParityReading | None:
    """Return a failed reading if the reference is the baseline's own program and returns a too narrow type; else None.

    A type is too narrow if it is less exact than the requested precision. Then right outputs of other variants would
    differ from the reference.
    """
    if catalogue.find(case.workload).has_reference():
        return None
    precision = case.arithmetic
    for launch in launches:
        if launch.variant != case.baseline:
            continue
        types = value_or_none(launch.facts.output_types) or {}
        for name, type_name in types.items():
            if type_name in NARROWER.get(precision, ()):
                detail = (
                    f"{case.baseline}'s own program is the reference, and it returns {name} as {type_name}, although "
                    f"{precision} is requested: leave the type as it is given, or write a reference() in NumPy"
                )
                return _reading(units, case.baseline, detail)
    return None


def without_reference(case: Case, launches: Iterable[LaunchRecord], units: int, error: Exception) -> ParityReading:
    """Return the failed reading of outputs that cannot be compared, because computing the reference raised `error`."""
    is_unrepeatable = isinstance(error, UnrepeatableError)
    reason = str(error) if is_unrepeatable else script.format_error(error)
    if isinstance(error, CanonicalError):
        culprit = CANONICAL
        detail = f"{CANONICAL} cannot be used: {error}"
    elif catalogue.find(case.workload).has_reference():
        culprit = REFERENCE
        detail = f"{REFERENCE} cannot be used: {reason}"
    else:
        culprit = case.baseline
        launch_has_failed = any(launch.failure for launch in launches if launch.variant == culprit)
        if is_unrepeatable:
            problem = reason
        elif launch_has_failed:  # so float64 need not be the reason
            problem = f"it failed: {reason}"
        else:
            problem = f"it fails in float64 ({REMEDY}): {reason}"
        detail = f"{culprit}'s own program is the reference, and {problem}"
    return _reading(units, culprit, detail)


def _reading(units: int, culprit: str, detail: str) -> ParityReading:
    """Return the failed reading of outputs without a reference; `culprit` names the variant or function that failed."""
    return ParityReading(
        units=units, finite=True, worst_ratio=MISMATCH, worst_array="", detail=detail, failed_reference=culprit
    )
