"""The log keeps under 4 MiB; every checkpoint of the largest run and any result are in it."""

import os
import random
import string
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest

from accelbench.api.result import MAXIMUM_BYTES, Phase, SpeedupEstimate
from accelbench.api.run import MAXIMUM_ROUNDS, MAXIMUM_VARIANTS
from accelbench.delivery.log import (
    MAXIMUM_LINE_BYTES,
    MAXIMUM_LOG_BYTES,
    LaunchFinished,
    LaunchStarted,
    PhaseReached,
    RoundFinished,
    TimeSoFar,
    parse_event,
    read_log,
)
from accelbench_runner.supervisor.log_writer import MAXIMUM_BYTES_BY_KIND, LogWriter, OutputForwarder
from delivery.largest import result_of

NAMES = [f"pytorch/compile-{'x' * 45}{number:02}" for number in range(MAXIMUM_VARIANTS)]


@pytest.fixture
def written(tmp_path: Path) -> Iterator[tuple[LogWriter, Callable[[], bytes]]]:
    """A log, and what stands in it."""
    descriptor = os.open(tmp_path / "log", os.O_RDWR | os.O_CREAT)
    yield LogWriter(descriptor), (tmp_path / "log").read_bytes
    os.close(descriptor)


def incompressible(length: int, seed: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits + string.punctuation, k=length))  # noqa: S311


def test_the_shares_of_the_log_add_up_to_the_whole() -> None:
    assert sum(MAXIMUM_BYTES_BY_KIND.values()) == MAXIMUM_LOG_BYTES


def test_the_largest_possible_case_keeps_every_checkpoint_and_the_result(
    written: tuple[LogWriter, Callable[[], bytes]],
) -> None:
    log, content = written
    worst = incompressible(MAXIMUM_BYTES, 0)
    log.document("result", "final", worst)
    now = [SpeedupEstimate(variant=name) for name in NAMES[1:]]
    times = [TimeSoFar(variant=name, seconds="0.00123456789") for name in NAMES]
    for number in range(1, MAXIMUM_ROUNDS + 1):
        for position, name in enumerate(NAMES):
            log.event(LaunchStarted(variant=name, round=number, position=position, of=len(NAMES)))
            for phase in get_args(Phase):
                log.event(PhaseReached(phase=phase))
            log.event(LaunchFinished(variant=name, round=number, wall_seconds="12.3457"))
            log.document("launch", f"{number}/{name}", worst[:6000])
        forward = OutputForwarder(log, f"{NAMES[0]} round {number}")
        forward("stdout", b"\x00" * 40_000 + b"\n" * 20_000)
        forward.finish()
        log.event(RoundFinished(round=number, comparisons=now, times=times))
        log.document("checkpoint", str(number), result_of(len(NAMES), number).to_json())
    assert len(content()) <= MAXIMUM_LOG_BYTES
    lines = content().decode().split("\n")
    delivered = read_log(lines)
    assert delivered.problems == ()
    assert max(len(line.encode()) for line in lines) <= MAXIMUM_LINE_BYTES
    assert any("lines that launches printed" in note for note in log.omission_notes())
    found = [(document.kind, document.identifier) for document in delivered.documents]
    assert ("result", "final") in found
    assert [identifier for kind, identifier in found if kind == "checkpoint"] == [str(n) for n in range(1, 51)]
    launches = sum(kind == "launch" for kind, _ in found)
    assert 0 < launches < MAXIMUM_ROUNDS * MAXIMUM_VARIANTS
    assert any(note.startswith(f"{800 - launches} block series") for note in log.omission_notes())
    events = [event for line in lines if (event := parse_event(line))]
    assert sum(isinstance(event, LaunchFinished) for event in events) == 800
    assert sum(isinstance(event, RoundFinished) for event in events) == 50


def test_an_omission_is_noted_where_it_begins(written: tuple[LogWriter, Callable[[], bytes]]) -> None:
    log, content = written
    text = incompressible(6000, 0)
    for number in range(400):
        log.document("launch", f"1/{number}", f"{number:04}{text}")
    notices = [line for line in content().decode().split("\n") if line.startswith("accelbench: ")]
    assert notices == ["accelbench: block series of launches from here on left out: their share of the log is used up"]


def test_a_document_is_in_the_log_completely_or_not_at_all(written: tuple[LogWriter, Callable[[], bytes]]) -> None:
    log, content = written
    text = incompressible(60_000, 0)
    for number in range(100):
        log.document("launch", f"1/{number}", f"{number:04}{text}")
    assert log.omission_notes()
    assert read_log(content().decode().split("\n")).problems == ()
