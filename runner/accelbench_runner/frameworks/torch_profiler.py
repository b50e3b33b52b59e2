"""Record PyTorch programs by PyTorch's profiler, and find the operations in its trace."""

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode

from accelbench_runner.frameworks.profiler import Profiler, RecordedOperations
from accelbench_runner.frameworks.source_lines import Line, format_lines, is_user_file
from accelbench_runner.frameworks.torch_accounting import has_compiled
from accelbench_runner.frameworks.torch_trace import find_operations
from accelbench_runner.frameworks.trace import Event
from accelbench_runner.frameworks.work import Work


class TorchProfiler(Profiler):
    """Record by `torch.profiler`."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def record(self, run: Callable[[], None], directory: Path) -> Path:
        """Call `run` under PyTorch's profiler, and return the trace's file."""
        activities = [ProfilerActivity.CPU]
        if self._device.type == "cuda":
            activities.append(ProfilerActivity.CUDA)
        with profile(activities=activities) as profiled:
            run()
        trace = directory / "trace.json.gz"
        profiled.export_chrome_trace(str(trace))
        return trace

    def operations(self, events: Sequence[Event], work: Work) -> RecordedOperations:
        """Return the runs of operations or kernels; on a CPU, another call finds the lines of eager operations."""
        # Kernels of a device have other names than operations. `find_sources` makes a call in which what Dynamo has
        # compiled would run eagerly, as other operations.
        has_sources = self._device.type == "cpu" and not has_compiled()
        return find_operations(events, find_sources(work) if has_sources else {})


def find_sources(work: Work) -> dict[str, str]:
    """Make another call; return, by the profiler's name of each operation, the lines that dispatch the operation.

    Operations of a backward pass come from the line that starts the pass.
    """
    finder = _SourceFinder()
    state = work.fresh()
    with finder:
        work.call(state, work.batches)
    return {name: format_lines(lines) for name, lines in finder.lines.items()}


class _SourceFinder(TorchDispatchMode):  # type: ignore[misc]
    """Store the line of the user's program from which each operation is dispatched."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: dict[str, set[Line]] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Store the caller's line, and run the operation."""
        del types
        line = _users_line(sys._getframe())  # noqa: SLF001 - `inspect` would read every file's source
        if line is not None:
            name = func.name().partition(".")[0]  # without the overload: `aten::add` of `aten::add.Tensor`
            self.lines.setdefault(name, set()).add(line)
        return func(*args, **(kwargs or {}))


def _users_line(frame: FrameType | None) -> Line | None:
    """Return the innermost line of the user's program in a stack; None if there is none."""
    while frame is not None:
        if is_user_file(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return None
