"""Check that launches were in a steady state: blocks become neither slower nor faster while they are timed.

A drift passes if it is smaller than half of the equivalence margin or the target, whichever is larger. One launch that
drifts is noise that the interval covers, because a launch is the unit of randomness; a variant is unsteady if its
launches drift alike or if most of them drift. An episode is measured from its first call to its last and has no steady
state.
"""

import math
from collections.abc import Iterator

from accelbench.launch.record import LaunchRecord
from accelbench.stats.drift import Drift, common_drift, launch_drift
from accelbench.validity.check import CaseCheck, Finding, VariantFinding, failed, passed, untested
from accelbench.validity.evidence import Evidence

MAXIMUM_DRIFT_FRACTION = 0.5
"""Maximum drift, as a share of the equivalence margin or of the target, whichever is larger."""


def _evaluate(evidence: Evidence) -> Iterator[VariantFinding]:
    """Fail each variant whose block times drift within its launches; an episode, which has no steady state, passes."""
    measurement = evidence.case.measurement
    smallest_relevant_change = max(float(measurement.equivalence_margin), float(measurement.target_relative_error))
    for variant in evidence.variants:
        launches = evidence.launches_of(variant)
        if any(launch.protocol == "episode" for launch in launches):
            yield variant, passed("an episode has no steady state")
        else:
            drifts = [drift for drift in map(_drift, launches) if drift is not None]
            yield variant, judge_drifts(drifts, maximum=MAXIMUM_DRIFT_FRACTION * smallest_relevant_change)


def _drift(launch: LaunchRecord) -> Drift | None:
    """Return the drift of the seconds per unit over the launch's blocks; None with too few blocks."""
    return launch_drift([block.seconds / block.units for block in launch.blocks])


def judge_drifts(drifts: list[Drift], *, maximum: float) -> Finding:
    """Fail if a variant's block times drift by more than `maximum` in all launches alike, or in most of them.

    `drifts` has one item for each launch; `maximum` is a relative change, such as 0.01. Untested if launches or blocks
    are too few.
    """
    limit = math.log1p(maximum)
    common = common_drift([drift.log_change for drift in drifts])
    if common is not None and abs(common) > limit:
        return failed(
            f"unsteady: blocks become {_describe_change(common)} within a launch, all {len(drifts)} launches alike"
        )
    tested = [drift for drift in drifts if drift.evident is not None]  # None: it has too few blocks
    excesses = [drift.log_change for drift in tested if drift.evident and abs(drift.log_change) > limit]
    if len(tested) > 1 and len(excesses) > len(tested) / 2:
        worst = max(excesses, key=abs)
        return failed(
            f"unsteady: {len(excesses)} of {len(tested)} launches drift, the worst becomes {_describe_change(worst)}"
        )
    if len(tested) > 1 or common is not None:
        exceptions = f"; {len(excesses)} of {len(tested)} drift" if excesses else ""
        return passed(f"steady{exceptions}")
    if len(drifts) == 1:
        return untested("one launch is too few")
    return untested("too few blocks in a launch, and too few launches, to separate drift from noise")


def _describe_change(log_change: float) -> str:
    """Describe the logarithm of a time ratio, such as `3 % slower`."""
    percentage = 100 * abs(math.expm1(log_change))
    direction = "slower" if log_change > 0 else "faster"
    return f"{percentage:.2g} % {direction}"


CHECK = CaseCheck(
    name="unsteady",
    threshold=(
        f"second half of the blocks differs from the first by at most {MAXIMUM_DRIFT_FRACTION:g} of the margin or the "
        "target, whichever is larger: in most launches, and in the mean over launches"
    ),
    reason=(
        "a drift of half the margin moves a launch's median by a quarter of it; a larger drift passes if the blocks' "
        "autocorrelation explains it"
    ),
    evaluate=_evaluate,
    measured_only=True,
    noise=True,
    remedy=(
        "measure again when the machine is idle; if the same variant fails again, look in its code for why its calls "
        "do not settle"
    ),
)
