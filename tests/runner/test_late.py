"""Test the failure of a launch that used up its time: its phase, its limit, and other load."""

from collections.abc import Callable
from pathlib import Path

import pytest

from accelbench.api.result import Phase
from accelbench_runner.protocol import ActivityStarted, LaunchRequest, PhaseStarted
from accelbench_runner.supervisor.allowance import Allowance, Limit, launch_limit
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.listener import LaunchListener
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret
from runner.supervision import case_of

SHARE = launch_limit(60, time_limit=60, round_launches=3, launches_left=3, rounds_min=5, earlier_seconds=[])
STACK = b"""Current thread (most recent call first):
  File "theirs.py", line 7 in step
  File "ours.py", line 1 in call
"""


def late(
    directory: Path, limit: Limit, *, phase: Phase | None = "steady", crowded: float = 0.0, aside: bool = False
) -> Outcome:
    """Return the failure of a launch that used up its own limit."""
    listener = LaunchListener(
        forward=lambda *_: None,
        phase_reached=lambda _: None,
        allowance=Allowance(limit, case_seconds=600, others_share=lambda: crowded),
    )
    messages = [*([PhaseStarted(phase=phase)] if phase else []), *([ActivityStarted(name="parity")] if aside else [])]
    for message in messages:
        listener.received("messages", message.to_json().encode() + b"\n")
    listener.received("stderr", STACK)
    listener.seconds_left(limit.seconds)
    request = LaunchRequest(
        case=case_of("a", "b"), variant="a", round=1, directory=str(directory), descriptor=-1, threads=1
    )
    ending = ChildExit(status=-6, killed_for="limit", wall_seconds=limit.seconds + 1)
    return interpret(listener, ending, request, MemoryEvents(None, 0, 0), crowded)


def message(end: Outcome) -> str:
    assert end.failure is not None
    assert end.failure.reason == "TimedOut"
    return end.failure.message


LATER = launch_limit(600, time_limit=600, round_launches=3, launches_left=1, rounds_min=5, earlier_seconds=[2.0])


@pytest.mark.parametrize(
    ("phase", "aside", "named"),
    [("steady", False, "in steady"), ("compile", False, "in compile"), ("compile", True, "in parity")],
)
def test_the_failure_names_what_the_launch_was_doing(phase: Phase, aside: bool, named: str, tmp_path: Path) -> None:
    assert named in message(late(tmp_path, SHARE, phase=phase, aside=aside))


@pytest.mark.parametrize(("crowded", "named"), [(0.78, True), (0.05, False)])
def test_other_load_that_used_the_processors_is_named(crowded: float, named: bool, tmp_path: Path) -> None:
    assert ("78 %" in message(late(tmp_path, SHARE, crowded=crowded))) == named


def test_the_messages(golden: Callable[[str, str], None], tmp_path: Path) -> None:
    outcomes = {
        "a first launch": late(tmp_path, SHARE),
        "a later launch": late(tmp_path, LATER),
        "a later launch next to other load": late(tmp_path, LATER, crowded=0.5),
        "a launch that had not begun": late(tmp_path, SHARE, phase=None),
        "a launch that computed outputs": late(tmp_path, SHARE, phase="compile", aside=True),
    }
    golden("timed-out.txt", "".join(f"{name}: {message(outcome)}\n" for name, outcome in outcomes.items()))
