"""Blocks are long against the clock that times them."""

import statistics

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed
from accelbench.validity.evidence import Clock, Launch, Unreadable, fact

SHORTEST_BLOCK_SECONDS = 0.005
RESOLUTION_SHARE = 0.001


def _look(_case: Case, launch: Launch) -> Finding:
    if not launch.blocks:
        return failed("no block was timed")
    clock = fact(launch, "clock", Clock)
    if isinstance(clock, Unreadable):
        return failed(clock)
    block = statistics.median(each.seconds for each in launch.blocks)
    resolution = clock.resolution_seconds
    reading = f"blocks of {1000 * block:.3g} ms, clock resolves {1e9 * resolution:.3g} ns"
    fine_enough = 0 < resolution <= RESOLUTION_SHARE * block
    return passed(reading) if fine_enough and block >= SHORTEST_BLOCK_SECONDS else failed(reading)


CHECK = LaunchCheck(
    name="clock",
    threshold=f"blocks at least {1000 * SHORTEST_BLOCK_SECONDS:g} ms, resolution at most {RESOLUTION_SHARE:.1%} of it",
    reason=(
        "a tenth of the 1 % that a margin may ask for; blocks are calibrated to 10 ms before caches and clocks have "
        "settled, so one may turn out half as long, still longer than a tick of the scheduler"
    ),
    look=_look,
)
