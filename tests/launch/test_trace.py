"""The time of a trace is divided among the operations that ran, whatever contains or overlaps what."""

import gzip
import json
from pathlib import Path

import pytest

from accelbench_runner.frameworks.profiler import ProfilerError, RecordedOperations
from accelbench_runner.frameworks.trace import DividedTime, Interval, Operation, divide_time, read_events
from accelbench_runner.launch.profiling import RECORDED_EVENTS, plan_calls, summarise

MAIN, OTHER = (1, 1), (1, 2)


def ran(name: str, began: float, ended: float, track: tuple[int, int] = MAIN) -> Interval:
    return Interval(track, began, ended, Operation(name))


def times(divided: DividedTime) -> dict[str, tuple[float, int]]:
    return {operation.name: (total.microseconds, total.runs) for operation, total in divided.totals.items()}


def test_an_operation_has_its_own_time_without_the_operations_that_it_calls() -> None:
    divided = divide_time([ran("matmul", 0, 10), ran("resolve", 1, 2), ran("mm", 3, 9)])
    assert times(divided) == {"matmul": (3, 1), "resolve": (1, 1), "mm": (6, 1)}
    assert divided.busy_microseconds == 10


def test_an_operation_inside_one_of_the_same_name_is_a_part_of_it() -> None:
    divided = divide_time([ran("sort", 0, 10), ran("sort", 1, 9), ran("copy", 2, 4)])
    assert times(divided) == {"sort": (8, 1), "copy": (2, 1)}


def test_an_operation_that_ends_where_the_next_begins_does_not_contain_it() -> None:
    divided = divide_time([ran("first", 0, 4), ran("second", 4, 5)])
    assert times(divided) == {"first": (4, 1), "second": (1, 1)}


def test_operations_that_run_at_once_share_the_time() -> None:
    divided = divide_time([ran("left", 0, 8), ran("right", 4, 12, OTHER)])
    assert times(divided) == {"left": (6, 1), "right": (6, 1)}
    assert divided.busy_microseconds == 12


def test_time_in_which_nothing_runs_belongs_to_no_operation() -> None:
    divided = divide_time([ran("add", 0, 1), ran("add", 9, 10)])
    assert times(divided) == {"add": (2, 2)}
    assert divided.busy_microseconds == 2


def test_an_incomplete_run_in_a_trace_is_ignored() -> None:
    part = ran("sort", 5, 9)._replace(counts=False)
    assert times(divide_time([ran("sort", 0, 4), part])) == {"sort": (8, 1)}


def test_only_events_with_a_duration_and_names_of_threads_are_read(tmp_path: Path) -> None:
    events = [{"ph": "X", "name": "mm"}, {"ph": "i", "name": "now"}, {"ph": "M", "name": "thread_name"}]
    file = tmp_path / "trace.json.gz"
    file.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    assert [event["name"] for event in read_events(file)] == ["mm", "thread_name"]


def test_the_longest_operations_of_a_call_are_reported_and_the_others_counted() -> None:
    intervals = [ran(f"op-{number}", 100 * number, 100 * number + number + 1) for number in range(12)]
    profiled = summarise(RecordedOperations(intervals, shows_gaps=True), calls=2, seconds=240e-6)
    assert [operation.name for operation in profiled.operations] == [f"op-{number}" for number in range(11, 1, -1)]
    assert profiled.left_out == 2
    assert profiled.operations[0].seconds == pytest.approx(6e-6)
    assert profiled.operations[0].runs == 0.5
    assert profiled.seconds_per_call == pytest.approx(120e-6)
    assert profiled.busy_share == pytest.approx(78 / 240)


def test_gaps_are_not_reported_where_an_operations_time_contains_its_dispatch() -> None:
    assert summarise(RecordedOperations([ran("mm", 0, 1)], shows_gaps=False), calls=1, seconds=1e-5).busy_share is None


def test_a_trace_without_operations_is_an_error() -> None:
    with pytest.raises(ProfilerError):
        summarise(RecordedOperations([], shows_gaps=True), calls=1, seconds=1e-3)


@pytest.mark.parametrize(
    ("seconds", "events", "calls"),
    [
        pytest.param(0.001, 10, 100, id="as many as fill the time"),
        pytest.param(10.0, 10, 1, id="one long call"),
        pytest.param(0.001, 3000, RECORDED_EVENTS // 3000, id="no more than the events allow"),
        pytest.param(0.001, 10 * RECORDED_EVENTS, 1, id="one call of very many events"),
        pytest.param(0.1, 0, 1, id="no events"),
    ],
)
def test_recordings_are_short_and_small(seconds: float, events: int, calls: int) -> None:
    assert plan_calls(seconds, events) == calls
