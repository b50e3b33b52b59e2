"""Check that quota, hypervisor and reduced clocks took no time from a launch while blocks were timed.

A power cap does not fail a launch: a variant that draws more power than its device allows is slower for it in every
launch, and that is its result. The same holds for limits of voltage and of the board; the reading reports them. Heat
fails a launch, because it depends on what ran before. Pressure (PSI) is stored and not judged: threads of one framework
that wait for each other look like other load, which `shared_device` checks.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from accelbench import platforms
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import (
    DisturbanceLimit,
    Finding,
    LaunchCheck,
    failed,
    passed,
    passed_with_wider_spread,
    percent,
    untested,
)

QUOTA = DisturbanceLimit(widens=0.01, biases=0.01)
"""Maximum shares of the timed seconds: half of the usual margin; a launch's median over blocks moves even less."""
STEAL = DisturbanceLimit(widens=0.05, biases=0.05)
"""Maximum shares of the processors' time. Steal affects all variants, and a virtual machine always has some."""
CLOCKS = DisturbanceLimit(widens=0.01, biases=0.01)
"""Maximum shares of the steady phase."""
OWN_LOAD_REASONS = {"power cap", "board limit", "reliability"}
"""Reasons for reduced clocks that come from the variant's own load, and so belong to its result."""


def quota_share(launch: LaunchRecord) -> float | None:
    """Return the seconds in which the CPU quota stopped the launch, per timed second; None if unknown."""
    throttling = launch.facts.throttling
    timed_seconds = sum(block.seconds for block in launch.blocks)
    if isinstance(throttling, Unreadable) or not timed_seconds:
        return None
    return throttling.seconds / timed_seconds


def steal_share(launch: LaunchRecord) -> float:
    """Return the share of CPU time that the hypervisor took; 0 if unknown."""
    throttling, neighbours = launch.facts.throttling, launch.facts.neighbours
    if isinstance(throttling, Unreadable) or isinstance(neighbours, Unreadable):
        return 0.0
    return throttling.steal_seconds / neighbours.offered_seconds


def clock_shares(launch: LaunchRecord) -> Mapping[str, float] | None:
    """Return the share of time in which the device's clocks were reduced, by reason; None if unknown."""
    device = launch.facts.device_reading
    if isinstance(device, Unreadable) or device.held_back_seconds is None:
        return None
    return {reason: seconds / device.seconds for reason, seconds in device.held_back_seconds.items()}


class _LostTime(NamedTuple):
    """Hold a share of time in which a launch could not use its processors or device at full speed."""

    share: float
    limit: DisturbanceLimit
    description: str


def _lost_times(launch: LaunchRecord) -> Iterator[_LostTime]:
    """Yield the shares of time that quota and hypervisor took, and those with reduced clocks that exceed the limit."""
    quota = quota_share(launch)
    if quota is not None:
        yield _LostTime(quota, QUOTA, f"Held back by the CPU quota: {percent(quota)} of the timed seconds")
    steal = steal_share(launch)
    yield _LostTime(steal, STEAL, f"Hypervisor steal: {percent(steal)}")
    for reason, share in (clock_shares(launch) or {}).items():
        if share > CLOCKS.widens:
            judged_share = 0.0 if reason in OWN_LOAD_REASONS else share  # a power cap, for example, is only reported
            yield _LostTime(judged_share, CLOCKS, f"{reason} for {share:.0%} of the phase")


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if the launch lost too much time to quota, hypervisor or reduced clocks; untested if that is unknown."""
    throttling = launch.facts.throttling
    if isinstance(throttling, Unreadable):
        return untested(throttling)
    lost_times = list(_lost_times(launch))
    excesses = [lost_time for lost_time in lost_times if lost_time.share > lost_time.limit.biases]
    if excesses:
        texts = [f"{lost_time.description} (limit {percent(lost_time.limit.biases)})" for lost_time in excesses]
        return failed("; ".join(texts))
    # A device that has its own clocks, apart from the CPU's, should report why they were reduced.
    if clock_shares(launch) is None and platforms.find(case.accelerator.platform).own_users:
        device = launch.facts.device_reading
        source = "the device" if isinstance(device, Unreadable) else device.source
        return untested(f"{source} does not report why clocks were reduced")
    reading = "; ".join(lost_time.description for lost_time in lost_times)
    is_widened = any(lost_time.share > lost_time.limit.widens for lost_time in lost_times)
    return passed_with_wider_spread(reading) if is_widened else passed(reading)


CHECK = LaunchCheck(
    name="throttled",
    threshold=(
        f"at most {percent(QUOTA.biases)} of the timed seconds by quota, {percent(STEAL.biases)} of the processors' "
        f"time by the hypervisor, {percent(CLOCKS.biases)} of the phase by the device's clocks "
        f"({', '.join(sorted(OWN_LOAD_REASONS))}: any)"
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
