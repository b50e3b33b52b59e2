"""Find the runs of operations and kernels in a trace of PyTorch's profiler."""

from collections.abc import Mapping, Sequence

from accelbench.document import shorten
from accelbench.launch.facts import MAXIMUM_OPERATION_CHARACTERS
from accelbench_runner.frameworks.profiler import RecordedOperations
from accelbench_runner.frameworks.trace import Event, Operation, interval, timed

KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
"""Categories of events on a GPU."""
OPERATIONS = "cpu_op"
"""Category of events in which the host runs or dispatches operations."""
ATEN = "aten::"
FUSED = "_fused_"
"""Part of the names of kernels that Inductor generates from several operations."""
COMPILED = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction")
"""Prefixes of the names of compiled programs, which contain kernels that may have no events of their own."""


def find_operations(events: Sequence[Event], sources: Mapping[str, str]) -> RecordedOperations:
    """Return the runs of kernels if a GPU ran any, else those of the host's operations.

    `sources` has the source lines of operations, by name. On a CPU, an operation's event contains its dispatch, so the
    gaps between events mean nothing.
    """
    kernels = [event for event in timed(events) if event.get("cat") in KERNELS]
    recorded = kernels or [event for event in timed(events) if event.get("cat") == OPERATIONS]
    intervals = [interval(event, _operation(str(event["name"]), sources)) for event in recorded]
    return RecordedOperations(intervals, shows_gaps=bool(kernels))


def _operation(name: str, sources: Mapping[str, str]) -> Operation:
    """Return the operation of an event with this name; `sources` has the source lines of operations, by name."""
    # ATen's own fused operations, such as `aten::_fused_adam_`, are not made by a compiler.
    merged = name.startswith(COMPILED) or (FUSED in name and not name.startswith(ATEN))
    return Operation(shorten(name, MAXIMUM_OPERATION_CHARACTERS), sources.get(name, ""), merged)
