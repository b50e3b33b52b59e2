"""Make calls under the framework's profiler, and report which operations take most of their time.

Nothing here decides a verdict: it runs in a launch of its own, after all that is timed.
"""

import math
import shutil
from pathlib import Path
from typing import NamedTuple

from accelbench.api.operation_times import MAXIMUM_OPERATIONS
from accelbench.launch.facts import ProfiledCalls, ProfiledOperation
from accelbench_runner.clock import Clock
from accelbench_runner.frameworks.profiler import Profiler, ProfilerError, RecordedOperations
from accelbench_runner.frameworks.trace import divide_time, read_events
from accelbench_runner.frameworks.work import Work
from accelbench_runner.launch import blocks
from accelbench_runner.protocol import TRACE_FILE

RECORDINGS = 3
"""Number of recordings, of which the fastest counts: other load slows some of them down."""
RECORDED_SECONDS = 0.1
"""Planned seconds of a recording's calls."""
RECORDED_EVENTS = 20_000
"""Planned maximum of a recording's events. With so many, making and reading all recordings took 3 s in PyTorch."""
MAXIMUM_EVENTS = 200_000
"""Maximum number of events of a single call."""
MICROSECONDS = 1e6


class Recording(NamedTuple):
    """Hold one recording of calls."""

    file: Path
    """The profiler's trace."""
    calls: int
    seconds: float
    """Seconds of all calls together."""


def profile_calls(profiler: Profiler | None, work: Work, directory: Path, clock: Clock) -> ProfiledCalls:
    """Record calls several times, and return the operations that take most of the time of the fastest recording.

    The trace of this recording stays in `directory`.

    Raises ProfilerError if there is no profiler, if its trace has no operations, or if a call has more than
    `MAXIMUM_EVENTS` events.
    """
    if profiler is None:
        raise ProfilerError("the framework's adapter has no profiler")
    recorder = _Recorder(profiler, work, directory, clock)
    seconds_per_call = blocks.warm_up(work, clock)
    with blocks.garbage_collection_paused():
        event_count = len(read_events(recorder.record(1).file))  # the first recording also starts the profiler
        if event_count > MAXIMUM_EVENTS:
            raise ProfilerError(f"a call has {event_count:,} events, and at most {MAXIMUM_EVENTS:,} are read")
        calls = plan_calls(seconds_per_call, event_count)
        recordings = [recorder.record(calls) for _ in range(RECORDINGS)]
    fastest = min(recordings, key=lambda recording: recording.seconds)
    events = read_events(fastest.file)
    profiled = summarise(profiler.operations(events, work), fastest.calls, fastest.seconds)
    shutil.move(fastest.file, directory / TRACE_FILE)
    return profiled


def plan_calls(seconds_per_call: float, events_per_call: int) -> int:
    """Return how many calls to record, so that both seconds and events stay close to what is planned."""
    calls_in_time = math.ceil(RECORDED_SECONDS / seconds_per_call)
    return max(1, min(calls_in_time, RECORDED_EVENTS // max(1, events_per_call)))


def summarise(recorded: RecordedOperations, calls: int, seconds: float) -> ProfiledCalls:
    """Return the operations that take most of the time of `calls` calls, which took `seconds` together.

    Raises ProfilerError if no operation was recorded.
    """
    divided = divide_time(recorded.intervals)
    if not divided.totals:
        raise ProfilerError("the profiler's trace has no operations")
    longest_first = sorted(divided.totals.items(), key=lambda item: item[1].microseconds, reverse=True)
    operations = [
        ProfiledOperation(
            name=operation.name,
            source=operation.source,
            merged=operation.merged,
            runs=total.runs / calls,
            seconds=total.microseconds / MICROSECONDS / calls,
        )
        for operation, total in longest_first[:MAXIMUM_OPERATIONS]
        if total.runs  # without any, it is only a part of the runs of others
    ]
    busy_share = min(1.0, divided.busy_microseconds / MICROSECONDS / seconds)
    return ProfiledCalls(
        seconds_per_call=seconds / calls,
        calls=calls,
        busy_share=busy_share if recorded.shows_gaps else None,
        operations=operations,
        left_out=len(divided.totals) - len(operations),
    )


class _Recorder:
    """Record calls, each time into a directory of its own."""

    def __init__(self, profiler: Profiler, work: Work, directory: Path, clock: Clock) -> None:
        self._profiler, self._work, self._directory, self._clock = profiler, work, directory, clock
        self._recordings = 0

    def record(self, calls: int) -> Recording:
        """Record `calls` calls in a row, from a fresh state; with cold caches if the workload measures so."""
        self._recordings += 1
        directory = self._directory / f"recording-{self._recordings}"
        directory.mkdir()
        work, clock = self._work, self._clock
        state = work.fresh()
        work.synchronise(state)
        if work.evict:
            work.evict()
        seconds = 0.0

        def run() -> None:
            """Make the calls, and wait until they are done."""
            nonlocal state, seconds
            out = None
            began = clock.seconds()
            for _ in range(calls):
                state, out = work.call(state, work.batches)
            work.synchronise((state, out))
            seconds = clock.seconds() - began

        file = self._profiler.record(run, directory)
        return Recording(file, calls, seconds)
