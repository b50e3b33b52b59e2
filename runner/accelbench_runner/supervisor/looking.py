"""What a look at the machine saw before anything is measured: what will disturb launches, and what to do about it.

A child looks (`accelbench_runner.supervisor.look`); `warnings` says what it saw, and is pure.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping

from accelbench.document import Document
from accelbench.launch.facts import Process
from accelbench.report.noise import ACCEPT
from accelbench.validity.check import percent
from accelbench.validity.shared_device import NEIGHBOURS
from accelbench.validity.throttled import STEAL

LOOK = (sys.executable, "-m", "accelbench_runner.supervisor.look")
LIMIT_SECONDS = 20.0
NAMED_SHARE = 0.1
"""Of a processor: a process that uses less is not worth a line."""
SEEN_SHARE = 0.5
"""Of what others use: where less of it is seen, someone cannot be seen from here."""
WHOLE = 1.05
LOADED = 2.0
"""Tasks a processor that ran or waited in the last minute: the launches of a case before this one are under it."""
STEADY_GOVERNORS = {"", "performance"}


See = Callable[[Mapping[str, str]], "Seen"]


class Seen(Document):
    """What the machine did meanwhile, while this process slept."""

    processors: int
    """Those that launches may use."""
    seconds: float
    busy_seconds: float = 0.0
    """Of those processors, by others."""
    steal_seconds: float = 0.0
    processes: tuple[Process, ...] = ()
    """Those that used most."""
    load: float = 0.0
    """How many tasks ran or waited, on average over the last minute."""
    limit: float | None = None
    """Processors that the container may use; None: no limit."""
    governor: str = ""
    turbo: str = ""
    """`on`, `off`, or empty where that is not told."""


def see(host: Mapping[str, str]) -> Seen:
    """Has a child look, as it needs psutil and this process must not; `host` is the host's part of the fingerprint.

    Raises OSError, subprocess.SubprocessError and pydantic.ValidationError where it cannot.
    """
    ended = subprocess.run(
        LOOK, input=json.dumps(host), capture_output=True, text=True, timeout=LIMIT_SECONDS, check=True
    )
    return Seen.model_validate_json(ended.stdout)


def warnings(seen: Seen, *, accepts_noise: bool) -> tuple[str, ...]:
    """A line for each thing that will disturb launches, with what to do; none for a quiet machine."""
    disturbing = [*_neighbours(seen), *_taken(seen)]
    if disturbing and accepts_noise:
        disturbing.append("Noise is accepted: disturbed rounds count, and the result will say noisy.")
    elif disturbing:
        disturbing.append(f"Disturbed rounds are discarded and measured again. To keep them, {ACCEPT}.")
    return (*disturbing, *_clocks(seen))


def _neighbours(seen: Seen) -> list[str]:
    offered = seen.processors * seen.seconds
    if seen.busy_seconds <= NEIGHBOURS.biases * offered:
        loaded = f"The load average of the last minute is {seen.load:.1f} on {_of(seen)}: other work comes and goes."
        return [f"{loaded} Wait for it to end."] if seen.load > LOADED * seen.processors else []
    named = [each for each in seen.processes if each.seconds >= NAMED_SHARE * seen.seconds]
    lines = [
        f"{each.name} (pid {each.pid}) takes {_processors(each.seconds / seen.seconds, seen)}: "
        "end it, or pin it elsewhere."
        for each in named
    ]
    if sum(each.seconds for each in named) < SEEN_SHARE * seen.busy_seconds:
        lines.append(
            f"Other processes use {percent(seen.busy_seconds / offered)} of {_of(seen)}, and most of them cannot be "
            "seen from here or are short-lived: look on the host, or wait."
        )
    return lines


def _taken(seen: Seen) -> list[str]:
    lines = []
    stolen = seen.steal_seconds / (seen.processors * seen.seconds)
    if stolen > STEAL.biases:
        lines.append(
            f"Hypervisor steal: {percent(stolen)} (limit {percent(STEAL.biases)}): other virtual machines share this "
            "host. Wait for a quieter time, or take a host of your own."
        )
    if seen.limit is not None and seen.limit < seen.processors:
        lines.append(
            f"The CPU limit of {seen.limit:g} is less than {_of(seen)}, so that launches are held back: raise it."
        )
    return lines


def _clocks(seen: Seen) -> list[str]:
    if seen.governor in STEADY_GOVERNORS:
        return []
    turbo = " and turbo is on" if seen.turbo == "on" else ""
    said = f"The CPU governor is {seen.governor}{turbo}: clocks follow load and heat, and intervals get wider."
    return [f"{said} For steady clocks: cpupower frequency-set -g performance."]


def _processors(used: float, seen: Seen) -> str:
    if used > WHOLE:
        return f"{used:.1f} of {_of(seen)}"
    return f"{percent(used)} of {'one of ' if seen.processors > 1 else ''}{_of(seen)}"


def _of(seen: Seen) -> str:
    return f"{seen.processors} processors" if seen.processors > 1 else "the only processor"
