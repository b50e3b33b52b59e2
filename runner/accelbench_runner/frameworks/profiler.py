"""Define what an adapter needs to explain a variant: a profiler that records calls, and the operations in its trace."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from accelbench_runner.frameworks.trace import Event, Interval
from accelbench_runner.frameworks.work import Work


class ProfilerError(Exception):
    """Report that a profiler recorded nothing that could be shown."""


class RecordedOperations(NamedTuple):
    """Hold the runs of operations that a trace contains."""

    intervals: Sequence[Interval]
    shows_gaps: bool
    """True if nothing computes between the intervals. False if an interval also contains the operation's dispatch, or
    if work of a compiled program is in no interval."""


class Profiler(ABC):
    """Record calls by the framework's own profiler."""

    @abstractmethod
    def record(self, run: Callable[[], None], directory: Path) -> Path:
        """Call `run` under the profiler; return the file with the trace, in Chrome's format and compressed by gzip.

        The profiler may write into `directory`, which is empty. Raises ProfilerError if it wrote no trace.
        """
        ...

    @abstractmethod
    def operations(self, events: Sequence[Event], work: Work) -> RecordedOperations:
        """Return the runs of operations among the trace's events; this may make another call, to find their source."""
        ...
