"""A second in the life of the machine: who uses the processors, and what the hypervisor takes.

`python -m accelbench_runner.supervisor.survey` reads the host's part of the fingerprint from standard input and writes
a `Survey` to standard output. It imports psutil, so that the supervisor need not.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping

from accelbench.launch.facts import Process
from accelbench_runner.devices import cpu, processes
from accelbench_runner.supervisor.surroundings import Survey

SECONDS = 1.0


def survey(
    host: Mapping[str, str],
    machine: cpu.Processors = cpu,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Survey:
    """Reads counters, pauses, and reads them again."""
    processors = len(os.sched_getaffinity(0))
    others, taken, used, began = machine.other_processes(), machine.contention(), machine.usage(), clock()
    pause(SECONDS)
    seconds, used_then, taken_then = clock() - began, machine.usage(), machine.contention()
    most = processes.busiest(others, machine.other_processes())
    return Survey(
        processors=processors,
        seconds=seconds,
        busy_seconds=max(0.0, used_then.by_others_since(used)),
        steal_seconds=taken_then.since(taken).steal_seconds,
        processes=tuple(Process(**each._asdict()) for each in most),
        load=os.getloadavg()[0] * processors / (os.cpu_count() or processors),
        limit=float(host["cpuLimit"]) if "cpuLimit" in host else None,
        governor=host.get("governor", ""),
        turbo=host.get("turbo", ""),
    )


if __name__ == "__main__":
    sys.stdout.write(survey(json.load(sys.stdin)).to_json())
