"""Test that the termination message is whole at any moment, and names the variant that is about to run."""

from collections.abc import Callable
from pathlib import Path

from accelbench.delivery.log import Headline
from accelbench_runner.supervisor.log_writer import TerminationMessage
from runner.supervision import Ended, Supervised, case_of

Run = Callable[..., Ended]


def test_the_headline_names_the_running_launch(start: Callable[..., Supervised], tmp_path: Path) -> None:
    supervised = start(case_of("hangs", "killed"), launch=["/bin/sleep", "60"])
    named = None
    while named is None:
        assert supervised.process.poll() is None
        if supervised.headline_written():
            named = supervised.headline().running
    assert named in {"hangs", "killed"}
    supervised.process.terminate()
    assert supervised.end().headline.running is None


def test_the_headline_is_written_in_place_because_its_file_may_be_a_mount(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    path.write_text("x" * 2000)
    inode = path.stat().st_ino
    written = Headline(case="all", attempt=1, state="running", running="jax/jit")
    TerminationMessage(path, complain=lambda _: None).write(written)
    assert path.stat().st_ino == inode
    assert path.read_text() == written.to_message()


def test_a_headline_that_cannot_be_written_is_logged_once_and_stops_nothing(tmp_path: Path) -> None:
    complaints: list[str] = []
    message = TerminationMessage(tmp_path / "missing" / "file", complain=complaints.append)
    for _ in range(2):
        message.write(Headline(case="all", attempt=1, state="running"))
    assert len(complaints) == 1


def test_the_digest_in_the_headline_is_that_of_the_result(run: Run) -> None:
    ended = run(case_of("fine", "fine_2"))
    assert ended.log.latest("result", ended.headline.digest) == ended.log.latest("result")
    assert ended.headline.comparisons[0].verdict == "equivalent"
