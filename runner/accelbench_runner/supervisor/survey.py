"""Measure for one second which processes use the processors, and what the hypervisor takes.

`python -m accelbench_runner.supervisor.survey FILE` reads the host's part of the fingerprint from standard input and
writes a `Survey` to the file. It is a process of its own because it imports psutil, which the supervisor does without.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from accelbench.launch.facts import Process
from accelbench_runner.answers import write_answer
from accelbench_runner.devices import cpu, processes
from accelbench_runner.supervisor.preflight import Survey

PAUSE_SECONDS = 1.0


def survey(
    host: Mapping[str, str],
    machine: cpu.Processors = cpu,
    pause: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.monotonic,
) -> Survey:
    """Measure for `PAUSE_SECONDS` how much other processes use the CPUs that this process may run on.

    `host` is the host's part of the fingerprint. Tests pass another `machine`, `pause` and `clock`.
    """
    processors = len(os.sched_getaffinity(0))
    processes_before = machine.other_processes()
    contention_before = machine.contention()
    usage_before = machine.usage()
    began = clock()
    pause(PAUSE_SECONDS)
    seconds = clock() - began
    usage_after = machine.usage()
    contention_after = machine.contention()
    busiest = processes.busiest(processes_before, machine.other_processes())
    machine_load, _, _ = os.getloadavg()
    return Survey(
        processors=processors,
        seconds=seconds,
        busy_seconds=max(0.0, usage_after.others_seconds_since(usage_before)),
        steal_seconds=contention_after.since(contention_before).steal_seconds,
        processes=tuple(Process(**process._asdict()) for process in busiest),
        load=machine_load * processors / (os.cpu_count() or processors),  # scaled from all CPUs to these
        limit=float(host["cpuLimit"]) if "cpuLimit" in host else None,
        governor=host.get("governor", ""),
        turbo=host.get("turbo", ""),
    )


if __name__ == "__main__":
    write_answer(Path(sys.argv[1]), survey(json.load(sys.stdin)).to_json())
