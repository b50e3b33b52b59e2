"""Messages of a launch apart from its phases, and probes that raise."""

import math
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from accelbench.api.reasons import FailureReason
from accelbench.launch.fact import Unreadable, is_reported
from accelbench.launch.facts import Facts, Threads
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import step_loop
from accelbench_runner.launch.reporter import Reporter, describe_failure, ensure_formattable
from accelbench_runner.protocol import (
    PROBE_FILE,
    ActivityEnded,
    ActivityStarted,
    FactsReported,
    Failed,
    Message,
    parse_message,
)
from launch.simulation import Simulated


class Recorder:
    """Hold a reporter, its clock, and its messages."""

    def __init__(self, directory: Path, reading: int, writing: int) -> None:
        self.clock = Simulated([0.0])
        self.mark = directory / PROBE_FILE
        self.reporter = Reporter(writing, self.clock, probe_file=self.mark, skip=("limits",))
        self._reading, self._writing = reading, writing

    def messages(self) -> list[Message]:
        os.close(self._writing)
        with os.fdopen(os.dup(self._reading), "rb") as lines:
            return [parse_message(line) for line in lines]

    def spend(self, seconds: float) -> str:
        self.clock.now += seconds
        return "found"


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    reading, writing = os.pipe()
    yield Recorder(tmp_path, reading, writing)
    os.close(reading)


def fails() -> None:
    raise OSError("no such device")


def test_additional_work_is_announced_and_excludes_the_probe_inside_it(recorder: Recorder) -> None:
    with recorder.reporter.outside_phases("synchronisation"):
        recorder.spend(2.0)
        assert recorder.reporter.run_probe("synchronisation", lambda: recorder.spend(0.5)) == "found"
        recorder.spend(1.0)
    assert recorder.messages() == [
        ActivityStarted(name="synchronisation"),
        ActivityStarted(name="synchronisation", alone=True),
        ActivityEnded(name="synchronisation", seconds=0.5),
        ActivityEnded(name="synchronisation", seconds=3.0),
    ]


def test_an_exception_of_a_probe_is_reported_and_the_probe_is_not_repeated(recorder: Recorder) -> None:
    assert recorder.reporter.run_probe("watch", fails) is None
    assert recorder.reporter.run_probe("watch", lambda: recorder.spend(1.0)) is None
    recorder.reporter.run_probe_between_blocks("watch", fails)
    assert recorder.messages() == [
        ActivityStarted(name="watch", alone=True),
        ActivityEnded(name="watch", seconds=0.0, problem="OSError: no such device"),
    ]


def test_an_excluded_probe_does_not_run(recorder: Recorder) -> None:
    assert recorder.reporter.run_probe("limits", lambda: recorder.spend(1.0)) is None
    assert recorder.messages() == []


def test_between_blocks_a_probe_is_marked_in_a_file_and_no_message_is_sent(recorder: Recorder) -> None:
    marked: list[str] = []
    recorder.reporter.run_probe_between_blocks("watch", lambda: marked.append(recorder.mark.read_text()))
    assert marked == ["watch"]
    assert recorder.mark.read_text() == ""
    assert recorder.messages() == []


def test_a_fact_that_cannot_be_read_is_reported_as_such_and_ends_nothing(recorder: Recorder) -> None:
    recorder.reporter.send_facts(
        threads=lambda: Threads(requested=2, affinity=-math.inf),  # type: ignore[arg-type]
        executable=fails,
        peak_memory_bytes=-1,
        compile_cache=lambda: None,
        unit="step",
    )
    [message] = recorder.messages()
    assert isinstance(message, FactsReported)
    facts = Facts.parse(message.values)
    assert isinstance(facts.executable, Unreadable)
    assert facts.executable.why == "the launch reported executable that cannot be read: OSError: no such device"
    assert [name for name, fact in facts if is_reported(fact) and isinstance(fact, Unreadable)] == [
        "threads",
        "executable",
        "peak_memory_bytes",
    ]
    assert facts.unit == "step"
    assert not is_reported(facts.compile_cache)


def test_half_a_surrogate_pair_in_a_users_text_is_sent_as_a_question_mark(recorder: Recorder) -> None:
    recorder.reporter.send(Failed(reason=FailureReason.RAISED, message="bad \udc80 \N{SNOWMAN}"))
    [message] = recorder.messages()
    assert isinstance(message, Failed)
    assert message.message == "bad ? \N{SNOWMAN}"


def test_an_exception_whose_message_raises_is_described_nevertheless() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise KeyError("text")

    failed = describe_failure(ensure_formattable(MuteError()), None)
    assert failed.message == "RuntimeError: MuteError was raised, and formatting its message raises KeyError('text')"


def test_a_trace_names_no_line_of_accelbenchs_adapters() -> None:
    def step(_state: object, _batch: object) -> tuple[object, object]:
        raise ValueError("mine")

    call, batches = step_loop(Program(state=None, batches=[None], step=step, export=lambda _state, _out: {}, inner=2))
    with pytest.raises(ValueError, match="mine") as raised:
        call(None, batches)
    trace = describe_failure(raised.value, None).trace
    assert "in step: " in trace
    assert "adapter.py" not in trace
