"""Launches had reached their steady state when blocks were timed: blocks do not become slower or faster meanwhile.

A drift that is there and does not matter is let pass: it is held against half of what the comparison asks for, the
equivalence margin or the target, whichever is larger. One launch that drifts is noise that the interval sees, for the
launch is the unit of randomness; a variant is unsteady where its launches drift alike, or most of them drift. An
episode is what it is from its first call to its last, and has no steady state to reach.
"""

import math
from collections.abc import Iterator

from accelbench.launch.record import LaunchRecord
from accelbench.stats.drift import Drift, common_drift, launch_drift
from accelbench.validity.check import CaseCheck, Finding, failed, passed, untested
from accelbench.validity.evidence import Evidence

FRACTION = 0.5


def _evaluate(evidence: Evidence) -> Iterator[tuple[str | None, Finding]]:
    measurement = evidence.case.measurement
    asked = max(float(measurement.equivalence_margin), float(measurement.target_relative_error))
    for variant in evidence.variants:
        launches = evidence.of(variant)
        if any(launch.protocol == "episode" for launch in launches):
            yield variant, passed("an ordered pass, whole")
        else:
            drifts = [drift for launch in launches if (drift := _drift(launch))]
            yield variant, steady(drifts, matters=FRACTION * asked)


def _drift(launch: LaunchRecord) -> Drift | None:
    return launch_drift([block.seconds / block.units for block in launch.blocks])


def steady(drifts: list[Drift], *, matters: float) -> Finding:
    """Whether launches with these drifts are steady, where a relative change of `matters` matters."""
    limit = math.log1p(matters)
    common = common_drift([drift.log_change for drift in drifts])
    if common is not None and abs(common) > limit:
        return failed(f"unsteady: blocks become {_change(common)} within a launch, all {len(drifts)} launches alike")
    told = [drift for drift in drifts if drift.evident is not None]
    unsteady = [drift.log_change for drift in told if drift.evident and abs(drift.log_change) > limit]
    if len(told) > 1 and 2 * len(unsteady) > len(told):
        worst = max(unsteady, key=abs)
        return failed(f"unsteady: {len(unsteady)} of {len(told)} launches drift, the worst becomes {_change(worst)}")
    if len(told) > 1 or common is not None:
        found = f"; {len(unsteady)} of {len(told)} drift" if unsteady else ""
        return passed(f"steady{found}")
    if len(drifts) == 1:
        return untested("cannot be told from one launch")
    return untested("too few blocks in a launch, and too few launches, to tell drift from chance")


def _change(log_change: float) -> str:
    return f"{100 * abs(math.expm1(log_change)):.2g} % {'slower' if log_change > 0 else 'faster'}"


CHECK = CaseCheck(
    name="unsteady",
    threshold=(
        f"second half of the blocks within {FRACTION:g} of margin or target, whichever is larger, of the first: in "
        "most launches, and in the mean over launches"
    ),
    reason=(
        "a drift of half the margin moves a launch's median by a quarter of it; smaller drifts pass, and so do larger "
        "ones unless they exceed what the blocks' own autocorrelation explains"
    ),
    evaluate=_evaluate,
    measured_only=True,
    noise=True,
    remedy=(
        "measure again when the machine is quieter; where the same variant fails once more, its calls do not settle, "
        "and its code has to be looked at"
    ),
)
