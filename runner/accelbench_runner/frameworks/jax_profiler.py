"""Record JAX programs by JAX's profiler, and find the operations in its trace."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax

from accelbench.document import shorten
from accelbench.launch.facts import MAXIMUM_OPERATION_CHARACTERS
from accelbench_runner.frameworks.jax_accounting import CompiledCall
from accelbench_runner.frameworks.profiler import Profiler, ProfilerError, RecordedOperations
from accelbench_runner.frameworks.source_lines import is_users
from accelbench_runner.frameworks.trace import Event, Interval, Operation, interval, timed
from accelbench_runner.frameworks.work import Work
from accelbench_runner.frameworks.xla_sources import ProgramDescription, describe_program

DEVICE = "/device:"
"""Prefix of the names of processes in a trace that stand for a device."""
STREAM = "Stream"
"""Prefix of the names of a device's threads that run kernels; its other threads repeat them in other groups."""
JITTED = "jit_"
"""Prefix of the names of modules that XLA compiles for a jitted function."""


class JaxProfiler(Profiler):
    """Record by `jax.profiler`, whose trace names the HLO instruction of each event that runs one."""

    def __init__(self, compiled: CompiledCall) -> None:
        self._compiled = compiled

    def record(self, run: Callable[[], None], directory: Path) -> Path:
        """Call `run` under JAX's profiler, and return the trace."""
        options: Any = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0
        options.host_tracer_level = 1
        options.enable_hlo_proto = False  # otherwise it writes out every program that the process has compiled
        with jax.profiler.trace(directory, profiler_options=options):
            run()
        traces = sorted(directory.rglob("*.trace.json.gz"))
        if not traces:
            raise ProfilerError("JAX's profiler wrote no trace")
        return traces[0]

    def operations(self, events: Sequence[Event], work: Work) -> RecordedOperations:  # noqa: ARG002
        """Return the runs of HLO instructions: those on a device if there are any, else those on the host's threads.

        Events without an instruction, such as `PjitFunction`, dispatch work, and are left out.
        """
        instructions = [event for event in timed(events) if "hlo_op" in event.get("args", {})]
        streams = _streams(events)
        on_device = [event for event in instructions if (event["pid"], event["tid"]) in streams]
        executable = self._compiled.executable
        text = executable.as_text() if executable is not None else ""
        intervals = describe_events(
            on_device or instructions, describe_program(text, is_users), op_by_op=self._compiled.op_by_op
        )
        return RecordedOperations(intervals, shows_gaps=bool(on_device) or self._compiled.op_by_op)


def describe_events(events: Sequence[Event], program: ProgramDescription, *, op_by_op: bool) -> list[Interval]:
    """Return the intervals of events that run instructions of `program` or of other programs.

    Of other programs only the name is known: each is counted as a whole. `op_by_op` means that each is one operation.
    XLA divides some instructions into several events, of which the first counts, unless a loop repeats the instruction.
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
            key, repeats = (module, instruction, run), instruction in program.looped
        else:
            operation = Operation(_clip(module.removeprefix(JITTED)), merged=not op_by_op)
            key, repeats = (module, run), False
        intervals.append(interval(event, operation, counts=repeats or key not in counted))
        counted.add(key)
    return intervals


def _streams(events: Sequence[Event]) -> set[tuple[int, int]]:
    """Return the process and thread of each stream of a device."""
    metadata = [event for event in events if event.get("ph") == "M"]
    devices = {
        event["pid"]
        for event in metadata
        if event.get("name") == "process_name" and str(event["args"].get("name", "")).startswith(DEVICE)
    }
    return {
        (event["pid"], event["tid"])
        for event in metadata
        if event.get("name") == "thread_name"
        and event["pid"] in devices
        and str(event["args"].get("name", "")).startswith(STREAM)
    }


def _clip(name: str) -> str:
    """Shorten a name to the length that a fact may have."""
    return shorten(name, MAXIMUM_OPERATION_CHARACTERS)
