"""Test that a signal ends every process, and that what was measured is delivered."""

import signal
from collections.abc import Callable

import psutil
import pytest

from accelbench.delivery.log import LaunchFinished, PhaseReached, RoundFinished, parse_event
from cluster.wait import HANG_SECONDS
from runner.simulation import Simulation
from runner.supervision import Supervised, case_of, processes_below, seed_of

Start = Callable[..., Supervised]


@pytest.fixture
def waiting(start: Start) -> tuple[Supervised, bytes, list[psutil.Process]]:
    """Yield a supervisor in its second round, whose launch hangs and has a grandchild in another session."""
    supervised = start(case_of("fine", "waits-in-round-2", "fine_2"))
    read = read_until(supervised, lambda event: isinstance(event, PhaseReached) and event.phase == "warm-up")
    descendants = psutil.Process(supervised.process.pid).children(recursive=True)
    assert len(descendants) == 2
    return supervised, read, descendants


def read_until(supervised: Supervised, wanted: Callable[[object], bool]) -> bytes:
    read = b""
    assert supervised.process.stdout is not None
    for line in iter(supervised.process.stdout.readline, b""):
        read += line
        if wanted(parse_event(line.decode())):
            return read
    raise AssertionError(read)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_every_descendant_and_delivers_the_measured_rounds(
    waiting: tuple[Supervised, bytes, list[psutil.Process]], number: signal.Signals, status: int
) -> None:
    supervised, _, descendants = waiting
    supervised.process.send_signal(number)
    ended = supervised.end()
    assert [process for process in descendants if process.is_running()] == []
    assert ended.status == status
    assert ended.headline.state == "finished"
    assert ended.headline.message == f"interrupted by {number.name}"
    assert not ended.result.complete
    assert ended.result.stopped == "Interrupted"
    assert ended.result.rounds == 1
    assert ended.variant("fine").seconds is not None
    assert ended.variant("waits-in-round-2").failure is None
    last = [event for event in ended.events if isinstance(event, LaunchFinished)][-1]
    assert (last.variant, last.failure, last.unfinished) == ("waits-in-round-2", None, "interrupted")
    assert list(ended.work.iterdir()) == []


@pytest.mark.parametrize(
    ("order", "counted", "discarded"),
    [
        (("fine", "fine_2", "interrupted-in-round-2"), 2, "1 launch was"),
        (("fine", "interrupted-in-round-2", "fine_2"), 1, "2 launches were"),
        (("fine_2", "interrupted-in-round-2", "fine"), 1, "2 launches were"),
    ],
    ids=["a pair", "the baseline alone", "a variant alone"],
)
def test_a_pair_with_the_baseline_counts_though_its_round_was_interrupted(
    simulate: Simulation, order: tuple[str, ...], counted: int, discarded: str
) -> None:
    variants = ("fine", "fine_2", "interrupted-in-round-2")
    ended = simulate(case_of(*variants, seed=seed_of(variants, order, number=2)))
    assert ended.result.rounds == 1
    assert [len(ended.variant(name).launches) for name in ("fine", "fine_2")] == [counted, counted]
    pairs = {comparison.variant: comparison.rounds for comparison in ended.result.comparisons}
    assert pairs == {"fine_2": counted, "interrupted-in-round-2": 1}
    assert ended.result.notes == (f"round 2 was interrupted: {discarded} discarded",)


def test_a_launch_that_had_measured_when_its_warm_probe_was_interrupted_counts(start: Start) -> None:
    variants = ("fine", "warm-hangs")
    supervised = start(case_of(*variants, seed=seed_of(variants, variants)))
    read_until(supervised, lambda event: isinstance(event, PhaseReached) and event.phase == "device-init")
    supervised.process.terminate()
    ended = supervised.end()
    assert ended.result.rounds == 1
    assert ended.result.notes == ()


def test_a_signal_in_the_first_round_causes_a_result_without_times(start: Start) -> None:
    supervised = start(case_of("hangs", "fine"))
    read_until(supervised, lambda event: isinstance(event, PhaseReached) and event.phase == "setup")
    supervised.process.terminate()
    ended = supervised.end()
    assert ended.status == 143
    assert ended.result.rounds == 0
    assert all(variant.seconds is None and variant.failure is None for variant in ended.result.variants)


def test_a_judge_that_takes_too_long_after_a_signal_is_killed_and_earlier_rounds_are_kept(
    start: Start,
) -> None:
    environment = {"LAST_JUDGE_SECONDS": "0.5"}
    supervised = start(case_of("fine", "fine_2"), judge="waits-in-round-2", environment=environment)
    read_until(supervised, lambda event: isinstance(event, RoundFinished))
    while "judging" not in supervised.headline().message:
        assert supervised.process.poll() is None
    supervised.process.terminate()
    ended = supervised.end()
    assert ended.status == 143
    assert ended.result.rounds == 1
    assert [launch.round for launch in ended.variant("fine").launches] == [1]


def test_judging_of_a_round_is_completed_after_a_signal(start: Start) -> None:
    environment = {"LAST_JUDGE_SECONDS": str(HANG_SECONDS)}
    supervised = start(case_of("fine", "fine_2"), judge="waits-once-in-round-2", environment=environment)
    read_until(supervised, lambda event: isinstance(event, RoundFinished))
    while not list((supervised.directory / "work").glob("*/judge/asked")):
        assert supervised.process.poll() is None
    supervised.process.terminate()
    ended = supervised.end()
    assert ended.status == 143
    assert ended.result.rounds == 2
    assert ended.result.stopped == "Interrupted"


def test_a_launch_does_not_outlive_a_supervisor_that_was_killed(
    waiting: tuple[Supervised, bytes, list[psutil.Process]],
) -> None:
    supervised, _, descendants = waiting
    launch = next(process for process in descendants if process.ppid() == supervised.process.pid)
    supervised.process.kill()
    supervised.process.wait()
    psutil.wait_procs([launch], timeout=HANG_SECONDS)
    assert not launch.is_running()  # of what left its session, as the grandchild did, only a container's end takes care


def test_a_closed_output_pipe_ends_the_case(start: Start) -> None:
    supervised = start(case_of("fine", "fine_2", rounds=50))
    read_until(supervised, lambda event: isinstance(event, RoundFinished))
    assert supervised.process.stdout is not None
    supervised.process.stdout.close()
    assert supervised.process.wait(HANG_SECONDS) == 3
    assert supervised.headline().state == "failed"
    assert processes_below(supervised.directory / "work") == []
