"""Check that no other process used the processors or the device while blocks were timed.

Rounds pair launches so that a slow machine affects both sides alike, but other processes do not: an eager framework
whose threads wait for each other was eight times slower next to other load, a compiled one twice.
"""

from collections.abc import Mapping

from accelbench import platforms
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import Neighbours
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import DisturbanceLimit, Finding, LaunchCheck, failed, passed, percent, untested, widened

NEIGHBOURS = DisturbanceLimit(widens=0.10, biases=0.10)
"""Maximum shares of the processors' time. An idle machine showed 0.4 %, one that runs a whole Kubernetes node 3 %."""
MAXIMUM_NAMED = 2
"""Maximum number of processes that a reading names."""
MINIMUM_NAMED_SHARE = 0.01
"""Minimum share of the processors' time of a process that is named."""


def neighbours_share(neighbours: Neighbours) -> float:
    """Return the share of the processors' time that other processes used."""
    return max(0.0, neighbours.busy_seconds) / neighbours.offered_seconds


def could_use_fewer(fingerprint: Mapping[str, str]) -> bool:
    """Return True if launches use all of several processors, so that using fewer would leave some free."""
    used, available = fingerprint.get("cpusUsed"), fingerprint.get("cpus")
    return used == available and used not in {None, "1"}


def _advice(fingerprint: Mapping[str, str]) -> str:
    """Return what to do; using fewer processors only if launches use all of several."""
    fewer = ", or leave it some processors (--processors 1 on a laptop)"
    return f"end the other work{fewer if could_use_fewer(fingerprint) else ''}"


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    """Fail if other processes used more than the allowed share of processor time, or used the device.

    Untested if the device's monitor does not list its processes, where the platform's device can have other users.
    """
    neighbours = launch.facts.neighbours
    if isinstance(neighbours, Unreadable):
        return untested(neighbours)
    share = neighbours_share(neighbours)
    reading = f"Other processes used {percent(share)} of the CPU{_name_processes(neighbours)}"
    platform, device = platforms.find(case.accelerator.platform), launch.facts.device_reading
    users = None if isinstance(device, Unreadable) else device.other_processes
    if users is not None:
        reading += f"; {users} other process{'' if users == 1 else 'es'} on the {platform.title}"
    if share > NEIGHBOURS.biases or users:
        return failed(reading)
    if platform.own_users and users is None:
        if isinstance(device, Unreadable):
            return untested(device)
        return untested(f"{reading}; {device.source} does not list the processes on the {platform.title}")
    return widened(reading) if share > NEIGHBOURS.widens else passed(reading)


def _name_processes(neighbours: Neighbours) -> str:
    """Name the processes that used most: ` (python, pid 1234: 49 %)`.

    A process has no share if it used more than all others together on these processors: it also ran elsewhere.
    """
    whole = neighbours_share(neighbours)
    names = [
        f"{process.name}, pid {process.pid}" + (f": {percent(share)}" if share <= whole else "")
        for process in neighbours.processes[:MAXIMUM_NAMED]
        if (share := process.seconds / neighbours.offered_seconds) >= MINIMUM_NAMED_SHARE
    ]
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
