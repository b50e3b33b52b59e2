"""Test that a launch has ten seconds to exit after its final message, or after it closed its pipe."""

from collections.abc import Callable

import pytest

from accelbench_runner.protocol import Done
from accelbench_runner.supervisor.allowance import Allowance, Limit
from accelbench_runner.supervisor.listener import EXIT_SECONDS, LaunchListener
from runner.supervision import Ended, case_of

Run = Callable[..., Ended]


@pytest.fixture
def listener() -> LaunchListener:
    allowance = Allowance(launch_limit=Limit(60, "its limit"), case_seconds=60)
    return LaunchListener(forward=lambda *_: None, phase_reached=lambda _: None, allowance=allowance)


def test_a_launch_that_may_still_send_a_message_has_until_its_limit(listener: LaunchListener) -> None:
    assert listener.grace_seconds() is None


def test_a_launch_has_time_to_exit_after_its_final_message(listener: LaunchListener) -> None:
    listener.received("messages", Done().to_json().encode() + b"\n")
    assert listener.grace_seconds() == EXIT_SECONDS


def test_a_launch_has_time_to_exit_after_it_closed_its_pipe(listener: LaunchListener) -> None:
    listener.closed("messages")
    assert listener.grace_seconds() == EXIT_SECONDS


def test_a_launch_that_sends_garbage_has_no_time(listener: LaunchListener) -> None:
    listener.received("messages", b"Traceback\n")
    assert listener.grace_seconds() == 0


@pytest.mark.slow
def test_a_launch_that_does_not_exit_is_killed(run: Run) -> None:
    ended = run(case_of("fine", "closes-its-pipe", rounds=1))
    failure = ended.variant("closes-its-pipe").failure
    assert failure is not None
    assert failure.reason == "InvalidOutput"
    (wall,) = (float(launch["wallSeconds"]) for launch in ended.launches if launch["variant"] == "closes-its-pipe")
    assert wall >= EXIT_SECONDS
