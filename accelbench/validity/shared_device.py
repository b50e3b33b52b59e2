"""Check that no other process used the processors or the device while blocks were timed.

Rounds pair launches so that a slow machine affects both sides alike. Other processes do not: next to other load, an
eager framework whose threads wait for each other was eight times slower, a compiled framework two times.
"""

from collections.abc import Mapping

from accelbench import platforms
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import Neighbours
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

NEIGHBOURS = DisturbanceLimit(widens=0.10, biases=0.10)
"""Maximum shares of the processors' time. An idle machine showed 0.4 %, one that runs a whole Kubernetes node 3 %."""
MAXIMUM_NAMED = 2
"""Maximum number of processes that a reading names."""
MINIMUM_NAMED_SHARE = 0.01
"""Minimum share of the processors' time of a process that is named."""


def neighbours_share(neighbours: Neighbours) -> float:
    """Return the share of the CPU time of the launch's processors that other processes used, from 0 to 1."""
    # `busy_seconds` is slightly negative if the kernel's ticks missed some.
    return max(0.0, neighbours.busy_seconds) / neighbours.offered_seconds


def could_use_fewer_cpus(fingerprint: Mapping[str, str]) -> bool:
    """Return True if launches use all CPUs of a machine with several, so that some could be left to other work."""
    used, available = fingerprint.get("cpusUsed"), fingerprint.get("cpus")
    uses_all = used is not None and used == available
    has_several = available != "1"
    return uses_all and has_several


def _advice(fingerprint: Mapping[str, str]) -> str:
    """Return what to do about other work on a machine with this fingerprint."""
    if could_use_fewer_cpus(fingerprint):
        return "end the other work, or leave it some processors (--processors 1 on a laptop)"
    return "end the other work"


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if other processes used too much CPU time, or if any was on the device; untested if that is unknown."""
    neighbours = launch.facts.neighbours
    if isinstance(neighbours, Unreadable):
        return untested(neighbours)
    share = neighbours_share(neighbours)
    reading = f"Other processes used {percent(share)} of the CPU{_name_processes(neighbours)}"
    platform, device = platforms.find(case.accelerator.platform), launch.facts.device_reading
    device_processes = None if isinstance(device, Unreadable) else device.other_processes
    if device_processes is not None:
        plural = "" if device_processes == 1 else "es"
        reading += f"; {device_processes} other process{plural} on the {platform.title}"
    if share > NEIGHBOURS.biases or device_processes:
        return failed(reading)
    if platform.own_users and device_processes is None:  # nobody knows whether other processes used the device
        if isinstance(device, Unreadable):
            return untested(device)
        return untested(f"{reading}; {device.source} does not list the processes on the {platform.title}")
    return passed_with_wider_spread(reading) if share > NEIGHBOURS.widens else passed(reading)


def _name_processes(neighbours: Neighbours) -> str:
    """Name the processes that used the most CPU time, as ` (python, pid 1234: 49 %)`; empty if none used much."""
    total_share = neighbours_share(neighbours)
    names = []
    for process in neighbours.processes[:MAXIMUM_NAMED]:
        share = process.seconds / neighbours.offered_seconds
        if share >= MINIMUM_NAMED_SHARE:
            # A process may also run on CPUs that the total does not include. Its share is left out if it is larger than
            # the total, because the two would contradict each other.
            share_text = f": {percent(share)}" if share <= total_share else ""
            names.append(f"{process.name}, pid {process.pid}{share_text}")
    return f" ({'; '.join(names)})" if names else ""


CHECK = LaunchCheck(
    name="shared-device",
    threshold=f"at most {percent(NEIGHBOURS.biases)} of the processors' time, no other process on the device",
    reason="an idle machine showed 0.4 %, one that runs a whole Kubernetes node 3 %",
    evaluate=_evaluate,
    measured_only=True,
    disturbance=True,
    advice=_advice,
)
