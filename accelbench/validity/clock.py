"""Check that the clock is accurate and that blocks are long compared with its resolution."""

import statistics

from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import Finding, LaunchCheck, failed, passed

MINIMUM_BLOCK_SECONDS = 0.005
"""Minimum duration of a block: half of the planned one, for the reason in `CHECK.reason`."""
MAXIMUM_RESOLUTION_SHARE = 0.001
"""Maximum resolution of the clock, as a share of a block."""
MAXIMUM_CALL_SHARE = 0.01
"""Maximum of the resolution plus two readings, as a share of a call, for protocols that time calls one by one."""
MAXIMUM_DRIFT = 0.001
"""Maximum share by which the clock runs ahead of the raw clock, or behind it."""


def _evaluate(_case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the clock drifts, is too coarse for the launch's blocks or calls, or was replaced by the program.

    Fail also if no block was timed, or if nothing is known about the clock.
    """
    if not launch.blocks:
        return failed("no block was timed")
    meddling = launch.facts.meddling
    if not isinstance(meddling, Unreadable) and meddling.functions:
        return failed(f"the program replaced {', '.join(meddling.functions)}, which accelbench measures with")
    clock = launch.facts.clock
    if isinstance(clock, Unreadable):
        return failed(clock)
    seconds = statistics.median(block.seconds for block in launch.blocks)
    resolution, reading_seconds = clock.resolution_seconds, clock.reading_seconds
    if launch.protocol == "steady":
        durations = f"blocks of {1000 * seconds:.3g} ms"
        is_long_enough = seconds >= MINIMUM_BLOCK_SECONDS and resolution <= MAXIMUM_RESOLUTION_SHARE * seconds
    else:
        durations = f"calls of {1e6 * seconds:.3g} us"
        is_long_enough = resolution + 2 * reading_seconds <= MAXIMUM_CALL_SHARE * seconds
    reading = f"{durations}, clock resolves {1e9 * resolution:.3g} ns, is read in {1e9 * reading_seconds:.3g} ns"
    if abs(clock.drift) > MAXIMUM_DRIFT:
        return failed(f"{reading}, ran {clock.drift:+.2%} ahead of the raw clock")
    if resolution <= 0 or not is_long_enough:
        return failed(reading)
    return passed(reading)


CHECK = LaunchCheck(
    name="clock",
    threshold=(
        f"blocks at least {1000 * MINIMUM_BLOCK_SECONDS:g} ms, resolution at most {MAXIMUM_RESOLUTION_SHARE:.1%} of "
        f"it; where calls are timed one by one, resolution and two readings at most {MAXIMUM_CALL_SHARE:.0%} of one; "
        f"within {MAXIMUM_DRIFT:.1%} of the raw clock; no function of accelbench replaced"
    ),
    reason=(
        "0.1 % is a tenth of the smallest margin, 1 %. Blocks are calibrated to 10 ms before caches and clocks have "
        "settled, so a block may take only half of that, which is still longer than a scheduler tick. A single call "
        "cannot be made longer, and both sides pay the same for reading the clock, so half of the usual margin is "
        "allowed. Time servers stretch a clock by 0.05 % at most"
    ),
    evaluate=_evaluate,
    measured_only=True,
    remedy=(
        "give a call more to do, by larger arrays or more steps, if its blocks are too short; remove the lines that "
        "replace functions of accelbench, if the reading names some; a clock that drifts needs another machine"
    ),
)
