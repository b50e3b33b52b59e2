"""Record JAX programs by JAX's profiler, and find the operations in its trace."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax

from accelbench_runner.frameworks.jax_accounting import CompiledCall
from accelbench_runner.frameworks.profiler import Profiler, ProfilerError, RecordedOperations
from accelbench_runner.frameworks.source_lines import is_user_file
from accelbench_runner.frameworks.trace import Event
from accelbench_runner.frameworks.work import Work
from accelbench_runner.frameworks.xla_sources import describe_program
from accelbench_runner.frameworks.xla_trace import find_operations


class JaxProfiler(Profiler):
    """Record by `jax.profiler`, whose trace names the HLO instruction of each event that runs one."""

    def __init__(self, compiled: CompiledCall) -> None:
        self._compiled = compiled

    def record(self, run: Callable[[], None], directory: Path) -> Path:
        """Call `run` under JAX's profiler, and return the trace's file; raises ProfilerError if it wrote none."""
        options: Any = jax.profiler.ProfileOptions()
        options.python_tracer_level = 0  # record no calls of Python functions
        options.host_tracer_level = 1  # record fewer events of XLA's runtime than by default
        options.enable_hlo_proto = False  # otherwise it writes out every program that the process has compiled
        with jax.profiler.trace(directory, profiler_options=options):
            run()
        traces = sorted(directory.rglob("*.trace.json.gz"))
        if not traces:
            raise ProfilerError("JAX's profiler wrote no trace")
        return traces[0]

    def operations(self, events: Sequence[Event], work: Work) -> RecordedOperations:  # noqa: ARG002
        """Return the runs of HLO instructions, named by the program that `compile_ahead` has compiled."""
        executable = self._compiled.executable
        text = executable.as_text() if executable is not None else ""
        return find_operations(events, describe_program(text, is_user_file), op_by_op=self._compiled.op_by_op)
