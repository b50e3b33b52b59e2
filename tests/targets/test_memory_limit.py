"""A compiler without memory is distinguished from one that crashed for another reason."""

from pathlib import Path

import pytest

from accelbench.api.result import Failure
from accelbench_runner.protocol import LaunchRequest
from accelbench_runner.supervisor import launcher
from accelbench_runner.supervisor.allowance import Allowance, Limit
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.listener import LaunchListener
from accelbench_runner.supervisor.outcome import MemoryEvents, interpret
from judge.launches import a_case

NO_EVENTS = MemoryEvents(None, 0, 0)


def ended(directory: Path, words: bytes, memory_bytes: int | None) -> Failure:
    listener = LaunchListener(
        forward=lambda _channel, _data: None,
        phase_reached=lambda _phase: None,
        allowance=Allowance(launch_limit=Limit(60, "its limit"), case_seconds=60),
    )
    listener.stderr_tail = words
    request = LaunchRequest(
        case=a_case(),
        variant="jax/jit",
        round=1,
        directory=str(directory),
        descriptor=3,
        threads=1,
        purpose="compile",
        memory_bytes=memory_bytes,
    )
    failure = interpret(listener, ChildExit(status=-6, killed_for=None, wall_seconds=1), request, NO_EVENTS).failure
    assert failure is not None
    return failure


@pytest.mark.parametrize("words", [b"terminate called: std::bad_alloc", b"Check failed: pthread_create() failed."])
def test_a_compiler_that_exits_for_lack_of_memory_has_run_out_of_memory(tmp_path: Path, words: bytes) -> None:
    failure = ended(tmp_path, words, 2 * 1024**3)
    assert failure.reason == "OutOfMemory"
    assert failure.message.startswith("compiling needs more than the 2 GiB that a compiler may hold here")


def test_a_compiler_that_crashed_for_another_reason_was_killed(tmp_path: Path) -> None:
    assert ended(tmp_path, b"Segmentation fault", 2 * 1024**3).reason == "Killed"
    assert ended(tmp_path, b"std::bad_alloc", None).reason == "Killed", "it had no limit of its own"


@pytest.mark.parametrize(
    ("there", "limit"),
    [(None, 8), (64, 8), (5, 4), (1, 1)],
)
def test_the_memory_limit_leaves_room_for_the_reporting_process(
    monkeypatch: pytest.MonkeyPatch, there: int | None, limit: int
) -> None:
    monkeypatch.setattr(launcher.memory, "available_bytes", lambda: there and there * 1024**3)
    assert launcher.compiler_memory_limit() == limit * 1024**3
