"""Find the runs of HLO instructions in a trace of JAX's profiler."""

from collections.abc import Mapping, Sequence
from typing import Any

from accelbench.document import shorten
from accelbench.launch.facts import MAXIMUM_OPERATION_CHARACTERS
from accelbench_runner.frameworks.profiler import RecordedOperations
from accelbench_runner.frameworks.trace import Event, Interval, Operation, interval, timed
from accelbench_runner.frameworks.xla_sources import ProgramDescription

DEVICE = "/device:"
"""Prefix of the names of processes in a trace that stand for a device."""
STREAM = "Stream"
"""Prefix of the names of a device's threads that run kernels; its other threads repeat them in other groups."""
JITTED = "jit_"
"""Prefix of the names of modules that XLA compiles for a jitted function."""


def find_operations(events: Sequence[Event], program: ProgramDescription, *, op_by_op: bool) -> RecordedOperations:
    """Return the runs of HLO instructions: those on a device if there are any, else those on the host's threads.

    Events without an instruction, such as `PjitFunction`, dispatch work, and are left out. `program` is the call's own,
    and `op_by_op` means that each other program is one operation. On the host, gaps between the runs mean something
    only with `op_by_op`: some instructions of a compiled program have no event there.
    """
    instructions = [event for event in timed(events) if "hlo_op" in event.get("args", {})]
    streams = _streams(events)
    on_device = [event for event in instructions if (event["pid"], event["tid"]) in streams]
    intervals = _intervals(on_device or instructions, program, op_by_op=op_by_op)
    return RecordedOperations(intervals, shows_gaps=bool(on_device) or op_by_op)


def _intervals(events: Sequence[Event], program: ProgramDescription, *, op_by_op: bool) -> list[Interval]:
    """Return an interval for each event, with the operation that ran, and whether it counts as a run of the operation.

    An event of `program` is named by its instruction. XLA divides some instructions into several events, of which only
    the first counts, unless a loop repeats the instruction. Of another program only the name is known, so a run of it
    counts as one operation: one that is merged from several, unless JAX runs `op_by_op`.
    """
    counted: set[tuple[str, ...]] = set()
    key: tuple[str, ...]
    intervals = []
    for event in sorted(events, key=lambda event: float(event["ts"])):
        arguments: Mapping[str, Any] = event["args"]
        module = str(arguments.get("hlo_module", "")).partition("(")[0]
        instruction, run = str(arguments["hlo_op"]), str(arguments.get("run_id", event["ts"]))
        if program.module and module == program.module:
            operation = program.operations.get(instruction) or Operation(_clip(instruction))
            key = (module, instruction, run)
            is_looped = instruction in program.looped
        else:
            operation = Operation(_clip(module.removeprefix(JITTED)), merged=not op_by_op)
            key = (module, run)
            is_looped = False
        intervals.append(interval(event, operation, counts=is_looped or key not in counted))
        counted.add(key)
    return intervals


def _streams(events: Sequence[Event]) -> set[tuple[int, int]]:
    """Return the process and thread of each stream of a device."""
    devices: set[int] = set()  # processes that stand for a device
    streams: set[tuple[int, int]] = set()  # threads with the name of a stream, in any process
    for event in events:
        if event.get("ph") != "M":  # only metadata names processes and threads
            continue
        name = str(event["args"].get("name", ""))
        if event["name"] == "process_name" and name.startswith(DEVICE):
            devices.add(event["pid"])
        elif event["name"] == "thread_name" and name.startswith(STREAM) and event.get("tid") is not None:
            streams.add((event["pid"], event["tid"]))
    return {(pid, tid) for pid, tid in streams if pid in devices}


def _clip(name: str) -> str:
    """Shorten a name to the length that a fact may have."""
    return shorten(name, MAXIMUM_OPERATION_CHARACTERS)
