"""Read a profiler's trace, and divide the time of calls among the operations in it.

Both frameworks' profilers write Chrome's trace format, which Perfetto shows too: events of a process and a thread, with
a beginning and a duration in microseconds. Events of a thread contain each other.
"""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

Event = Mapping[str, Any]
"""One event of a trace, as JSON."""


class Operation(NamedTuple):
    """Name an operation, and the lines of the program that it comes from."""

    name: str
    source: str = ""
    merged: bool = False
    """True if a compiler made it of several operations."""


class Interval(NamedTuple):
    """Hold one run of an operation; times are in microseconds."""

    track: tuple[int, int]
    """Process and thread, or device and stream."""
    began: float
    ended: float
    operation: Operation
    counts: bool = True
    """False if it is a part of a run that another interval counts."""


@dataclass
class Total:
    """Add up the runs of one operation."""

    microseconds: float = 0.0
    runs: int = 0


@dataclass
class DividedTime:
    """Hold the time of each operation, and the time in which any operation ran."""

    totals: dict[Operation, Total] = field(default_factory=dict)
    busy_microseconds: float = 0.0


def read_events(file: Path) -> list[Event]:
    """Return the events of a trace that have a duration, and those that name processes and threads."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        events: list[Event] = json.load(lines)["traceEvents"]
    return [event for event in events if event.get("ph") in ("X", "M")]


def timed(events: Iterable[Event]) -> list[Event]:
    """Return the events with a duration."""
    return [event for event in events if event.get("ph") == "X"]


def interval(event: Event, operation: Operation, *, counts: bool = True) -> Interval:
    """Return the interval of an event of this operation; `counts` is as in `Interval`."""
    began = float(event["ts"])
    return Interval((event["pid"], event["tid"]), began, began + float(event.get("dur", 0.0)), operation, counts)


def divide_time(intervals: Sequence[Interval]) -> DividedTime:
    """Divide the time in which operations ran among them.

    At any moment a track runs the innermost of its open intervals: an operation's time is without those that it calls.
    If several tracks run something, they share that moment, so that all times add up to the time in which anything ran.
    An operation directly inside one of the same name is a part of it, and is no run of its own.
    """
    divided = DividedTime()
    open_intervals: dict[tuple[int, int], list[Interval]] = {}
    now = 0.0
    for moment, is_start, current in _changes(intervals):
        running = [stack[-1].operation for stack in open_intervals.values() if stack]
        if running:
            elapsed = moment - now
            divided.busy_microseconds += elapsed
            for operation in running:
                divided.totals[operation].microseconds += elapsed / len(running)
        now = moment
        stack = open_intervals.setdefault(current.track, [])
        if is_start:
            total = divided.totals.setdefault(current.operation, Total())
            is_part = bool(stack) and stack[-1].operation.name == current.operation.name
            if current.counts and not is_part:
                total.runs += 1
            stack.append(current)
        else:
            stack.remove(current)
    return divided


def _changes(intervals: Iterable[Interval]) -> list[tuple[float, bool, Interval]]:
    """Return the beginnings (True) and ends (False) of intervals in the order of time, outer intervals around inner.

    At the same moment, ends come first. Intervals without a duration are left out: they take no time, and would end
    before they begin.
    """
    lasting = [run for run in intervals if run.ended > run.began]
    # At the same moment, sort ends (0) before starts (1); of starts the longest run first, of ends the shortest.
    starts = [(run.began, 1, -run.ended, True, run) for run in lasting]
    ends = [(run.ended, 0, -run.began, False, run) for run in lasting]
    ordered = sorted([*starts, *ends], key=lambda change: change[:3])
    return [(moment, is_start, run) for moment, _, _, is_start, run in ordered]
