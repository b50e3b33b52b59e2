"""Check that no processor or clock time was taken away while blocks were timed: by quota, hypervisor or clocks.

A power cap does not fail a launch: a variant that draws more power than its device allows is slower for it in every
launch, and that is its result. The same holds for limits of voltage and of the board; the reading reports them. Heat
fails a launch, because it depends on what ran before. Pressure (PSI) is stored and not judged: threads of one framework
that wait for each other look like other load, which `shared_device` checks.
"""

from collections.abc import Iterator, Mapping

from accelbench import platforms
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import DisturbanceLimit, Finding, LaunchCheck, failed, passed, percent, untested, widened

QUOTA = DisturbanceLimit(widens=0.01, biases=0.01)
"""Maximum shares of the timed seconds: half of the usual margin; a launch's median over blocks moves less still."""
STEAL = DisturbanceLimit(widens=0.05, biases=0.05)
"""Maximum shares of the processors' time. Steal affects all variants, and a virtual machine always has some."""
CLOCKS = DisturbanceLimit(widens=0.01, biases=0.01)
"""Maximum shares of the steady phase."""
LAWFUL = {"power cap", "board limit", "reliability"}
"""Reasons for lower clocks that last as long as the variant's own load."""


def quota_share(launch: LaunchRecord) -> float | None:
    """Return the throttled seconds over the timed seconds; None if either is unknown."""
    throttling = launch.facts.throttling
    timed = sum(block.seconds for block in launch.blocks)
    return None if isinstance(throttling, Unreadable) or not timed else throttling.seconds / timed


def steal_share(launch: LaunchRecord) -> float:
    """Return the share of the launch's processor time that the hypervisor gave to others; 0 if unknown."""
    throttling, neighbours = launch.facts.throttling, launch.facts.neighbours
    if isinstance(throttling, Unreadable) or isinstance(neighbours, Unreadable):
        return 0.0
    return throttling.steal_seconds / neighbours.offered_seconds


def clock_shares(launch: LaunchRecord) -> Mapping[str, float] | None:
    """Return the share of the phase with reduced clocks, by reason; None if no device reports it."""
    device = launch.facts.device_reading
    if isinstance(device, Unreadable) or device.held_back_seconds is None:
        return None
    return {why: seconds / device.seconds for why, seconds in device.held_back_seconds.items()}


def _shares(launch: LaunchRecord) -> Iterator[tuple[float, DisturbanceLimit, str]]:
    """Yield each share of time that was taken away, its limit and its description.

    A reason for lower clocks is left out below its limit, and counts as 0 if it is in `LAWFUL`.
    """
    if (held_back := quota_share(launch)) is not None:
        yield held_back, QUOTA, f"Held back by the CPU quota: {percent(held_back)} of the timed seconds"
    stolen = steal_share(launch)
    yield stolen, STEAL, f"Hypervisor steal: {percent(stolen)}"
    for why, share in (clock_shares(launch) or {}).items():
        if share > CLOCKS.widens:
            yield 0.0 if why in LAWFUL else share, CLOCKS, f"{why} for {share:.0%} of the phase"


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if a share exceeds its limit; untested if the device should report its clocks and does not."""
    throttling = launch.facts.throttling
    if isinstance(throttling, Unreadable):
        return untested(throttling)
    shares = list(_shares(launch))
    if beyond := [f"{words} (limit {percent(limit.biases)})" for share, limit, words in shares if share > limit.biases]:
        return failed("; ".join(beyond))
    if clock_shares(launch) is None and platforms.find(case.accelerator.platform).own_users:
        device = launch.facts.device_reading
        source = "the device" if isinstance(device, Unreadable) else device.source
        return untested(f"{source} does not report why clocks were reduced")
    reading = "; ".join(words for _, _, words in shares)
    return widened(reading) if any(share > limit.widens for share, limit, _ in shares) else passed(reading)


CHECK = LaunchCheck(
    name="throttled",
    threshold=(
        f"at most {percent(QUOTA.biases)} of the timed seconds by quota, {percent(STEAL.biases)} of the processors' "
        f"time by the hypervisor, {percent(CLOCKS.biases)} of the phase by the device's clocks "
        f"({', '.join(sorted(LAWFUL))}: any)"
    ),
    reason=(
        "half of the usual margin; a launch's median over blocks moves even less. Stolen time affects all variants, "
        "and a virtual machine always has some"
    ),
    evaluate=_evaluate,
    measured_only=True,
    disturbance=True,
    advice=lambda _: "measure again later, use a dedicated host, or raise the CPU limit",
)
