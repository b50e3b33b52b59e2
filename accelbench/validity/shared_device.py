"""Nobody else used the processors, or the device, while blocks were timed.

Rounds pair launches, so that what slows the machine hits both sides alike; neighbours do not: an eager framework whose
threads wait for each other was seen eight times slower beside them, a compiled one twice.
"""

from collections.abc import Mapping

from accelbench import platforms
from accelbench.api.case import Case
from accelbench.launch.fact import Unreadable
from accelbench.launch.facts import Neighbours
from accelbench.launch.record import LaunchRecord
from accelbench.validity.check import DisturbanceLimit, Finding, LaunchCheck, failed, passed, percent, untested, widened

NEIGHBOURS = DisturbanceLimit(widens=0.10, biases=0.10)
"""Of the processors' time. A machine at rest was seen at 0.4 %, one that runs a whole Kubernetes node at 3 %."""
NAMED = 2
NAMED_SHARE = 0.01
"""Of the processors' time: a process that used less is not worth its name."""


def neighbours_share(neighbours: Neighbours) -> float:
    """Of the processors' time, what others used."""
    return max(0.0, neighbours.busy_seconds) / neighbours.offered_seconds


def could_use_fewer(fingerprint: Mapping[str, str]) -> bool:
    """Whether launches use every one of several processors; with fewer, other work has some of its own."""
    used, there = fingerprint.get("cpusUsed"), fingerprint.get("cpus")
    return used == there and used not in {None, "1"}


def _advice(fingerprint: Mapping[str, str]) -> str:
    fewer = ", or leave it processors of its own (--processors 1 on a laptop)"
    return f"end the other work{fewer if could_use_fewer(fingerprint) else ''}"


def _evaluate(case: Case, launch: LaunchRecord) -> Finding:
    neighbours = launch.facts.neighbours
    if isinstance(neighbours, Unreadable):
        return untested(neighbours)
    share = neighbours_share(neighbours)
    reading = f"Other processes used {percent(share)} of the CPU{_named(neighbours)}"
    platform, device = platforms.find(case.accelerator.platform), launch.facts.device_reading
    users = None if isinstance(device, Unreadable) else device.other_processes
    if users is not None:
        reading += f"; {users} other process{'' if users == 1 else 'es'} on the {platform.title}"
    if share > NEIGHBOURS.biases or users:
        return failed(reading)
    if platform.own_users and users is None:
        if isinstance(device, Unreadable):
            return untested(device)
        return untested(f"{reading}; {device.source} does not show who uses the {platform.title}")
    return widened(reading) if share > NEIGHBOURS.widens else passed(reading)


def _named(neighbours: Neighbours) -> str:
    """` (python, pid 1234: 49 %)`: those that used most of it, as far as they can be seen from here.

    Without a share where they used more than all others did here: then they ran on other processors, too.
    """
    whole = neighbours_share(neighbours)
    found = [
        f"{each.name}, pid {each.pid}" + (f": {percent(share)}" if share <= whole else "")
        for each in neighbours.processes[:NAMED]
        if (share := each.seconds / neighbours.offered_seconds) >= NAMED_SHARE
    ]
    return f" ({'; '.join(found)})" if found else ""


CHECK = LaunchCheck(
    name="shared-device",
    threshold=f"at most {percent(NEIGHBOURS.biases)} of the processors' time, no other process on the device",
    reason="an idle machine showed 0.4 %, one that runs a whole Kubernetes node 3 %",
    evaluate=_evaluate,
    measured_only=True,
    disturbance=True,
    advice=_advice,
)
