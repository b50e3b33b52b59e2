"""Nothing was taken away while blocks were timed: by the group's quota, by the hypervisor, by the device's own clocks.

A power cap is no fault of a measurement: a variant that draws more power than its device may is slower for it, launch
after launch, and that is what is measured; so are the limits of voltage and of the board. They are said in the reading.
Heat is another matter: it depends on what ran before. Pressure (PSI) is kept as a fact and not judged: threads of one
framework that wait for each other look the same as neighbours, who have a check of their own.
"""

from collections.abc import Mapping

from accelbench.api.case import Case
from accelbench.validity.check import Finding, LaunchCheck, failed, passed, untested
from accelbench.validity.evidence import Gpu, Launch, Neighbours, Throttling, Unreadable, fact

ALLOWED_SHARE = 0.01
ALLOWED_STEAL = 0.05
LAWFUL = {"power cap", "board limit", "reliability"}
"""What holds clocks back for as long as a variant asks for what it does."""


def quota_share(launch: Launch) -> float | None:
    """Seconds for which the group was held back, over those that were timed; None where that is not known."""
    throttling = fact(launch, "throttling", Throttling)
    timed = sum(block.seconds for block in launch.blocks)
    return None if isinstance(throttling, Unreadable) or not timed else throttling.seconds / timed


def steal_share(launch: Launch) -> float:
    """Of the launch's processors' time, what the hypervisor gave to others; 0 where that is not known."""
    throttling, neighbours = fact(launch, "throttling", Throttling), fact(launch, "neighbours", Neighbours)
    if isinstance(throttling, Unreadable) or isinstance(neighbours, Unreadable):
        return 0.0
    return throttling.steal_seconds / neighbours.offered_seconds


def clock_shares(launch: Launch) -> Mapping[str, float] | None:
    """Of the phase, by why, for how much the device's clocks were held back; None where no device says."""
    gpu = fact(launch, "gpu", Gpu)
    if isinstance(gpu, Unreadable) or gpu.held_back_seconds is None:
        return None
    return {why: seconds / gpu.seconds for why, seconds in gpu.held_back_seconds.items()}


def _look(case: Case, launch: Launch) -> Finding:
    throttling = fact(launch, "throttling", Throttling)
    if isinstance(throttling, Unreadable):
        return untested(throttling)
    timed = sum(block.seconds for block in launch.blocks)
    readings = [f"held back for {throttling.seconds:.3g} s in {throttling.periods} periods, {timed:.3g} s timed"]
    beyond = throttling.seconds > ALLOWED_SHARE * timed
    if (stolen := steal_share(launch)) > ALLOWED_STEAL:
        readings.append(f"hypervisor steal: {100 * stolen:.0f} % (limit {100 * ALLOWED_STEAL:.0f} %)")
        beyond = True
    clocks = clock_shares(launch)
    for why, share in (clocks or {}).items():
        if share > ALLOWED_SHARE:
            readings.append(f"{why} for {share:.0%} of the phase")
            beyond |= why not in LAWFUL
    if beyond:
        return failed(", ".join(readings))
    if clocks is None and case.accelerator.platform == "cuda":
        return untested("NVML does not say why the clocks were what they were")
    return passed(", ".join(readings))


CHECK = LaunchCheck(
    name="throttled",
    threshold=(
        f"at most {ALLOWED_SHARE:.0%} of the timed seconds by quota, {ALLOWED_STEAL:.0%} of the processors' time by "
        f"the hypervisor, {ALLOWED_SHARE:.0%} of the phase by the device's clocks ({', '.join(sorted(LAWFUL))}: any)"
    ),
    reason=(
        "half of the usual margin; a launch's median over blocks sees less of it still. Stolen time comes to all "
        "variants, and a virtual machine is never without"
    ),
    look=_look,
    disturbance=True,
)
