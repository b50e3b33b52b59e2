"""What is said of a launch whose time was up: where it was, whose limit that was, and who else was at work."""

from pathlib import Path

import pytest

from accelbench.api.result import Phase
from accelbench_runner.protocol import AsideStarted, LaunchRequest, PhaseStarted
from accelbench_runner.supervisor.allowance import Allowance, Limit, launch_limit
from accelbench_runner.supervisor.children import ChildExit
from accelbench_runner.supervisor.listener import LaunchListener
from accelbench_runner.supervisor.outcome import MemoryEvents, Outcome, interpret
from runner.supervision import case_of

SHARE = launch_limit(60, time_limit=60, of=3, left=3, rounds_min=5, before=[])
STACK = b"""Current thread (most recent call first):
  File "theirs.py", line 7 in step
  File "ours.py", line 1 in call
"""


def late(
    directory: Path, limit: Limit, *, phase: Phase | None = "steady", crowded: float = 0.0, aside: bool = False
) -> Outcome:
    """Of a launch that used up its own limit."""
    listener = LaunchListener(
        forward=lambda *_: None,
        phase_reached=lambda _: None,
        allowance=Allowance(limit, case_seconds=600, others_share=lambda: crowded),
    )
    said = [*([PhaseStarted(phase=phase)] if phase else []), *([AsideStarted(name="parity")] if aside else [])]
    for message in said:
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


def test_the_first_launch_of_a_variant_has_a_share_of_the_cases_limit(tmp_path: Path) -> None:
    said = message(late(tmp_path, SHARE))
    assert said.startswith("it was still in steady after 20 s, its share of the case's time limit of 60 s")
    assert said.endswith("it was at theirs.py, line 7 in step, called from ours.py, line 1 in call")


def test_a_later_launch_is_held_against_those_before_it(tmp_path: Path) -> None:
    limit = launch_limit(600, time_limit=600, of=3, left=1, rounds_min=5, before=[2.0, 10.0])
    assert "after 50 s, its limit, as its longest launch before took 10 s" in message(late(tmp_path, limit))


@pytest.mark.parametrize(
    ("phase", "aside", "said"),
    [(None, False, "it had not begun"), ("compile", False, "in compile"), ("compile", True, "in parity")],
)
def test_where_it_was_is_said(phase: Phase | None, aside: bool, said: str, tmp_path: Path) -> None:
    assert said in message(late(tmp_path, SHARE, phase=phase, aside=aside))


@pytest.mark.parametrize(("crowded", "said"), [(0.78, True), (0.05, False)])
def test_others_that_took_the_processors_meanwhile_are_named(crowded: float, said: bool, tmp_path: Path) -> None:
    assert ("while others took 78 % of the processors" in message(late(tmp_path, SHARE, crowded=crowded))) == said


def test_a_limit_that_grew_with_what_others_took_says_what_it_was(tmp_path: Path) -> None:
    limit = launch_limit(600, time_limit=600, of=3, left=1, rounds_min=5, before=[2.0])
    said = message(late(tmp_path, limit, crowded=0.5))
    assert "after 45 s, its limit, as its longest launch before took 2 s" in said
    assert "(it is 30 s without other load), while others took 50 %" in said
