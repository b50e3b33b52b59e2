"""Who takes the processors that a launch may run on: neither we, nor what descends from us."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from accelbench_runner.supervisor.crowd import Crowd

BUSY = """
import time
while time.process_time() < 1.5: pass
print("done", flush=True)
input()
"""
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
STRANGER = """
from accelbench_runner.supervisor.crowd import Crowd
while True:
    input()
    print(Crowd.read().others, flush=True)
"""


@contextlib.contextmanager
def started(program: str) -> Iterator[subprocess.Popen[str]]:
    """A program that ends once its input does."""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        yield process


def others_for(stranger: subprocess.Popen[str]) -> float:
    """Seconds, as another process sees it."""
    assert stranger.stdin
    assert stranger.stdout
    stranger.stdin.write("\n")
    stranger.stdin.flush()
    return float(stranger.stdout.readline())


def test_what_our_children_start_is_ours_while_it_runs_and_others_for_everybody_else() -> None:
    with started(STRANGER) as stranger:
        theirs, ours = others_for(stranger), Crowd.read().others
        with started(NESTED) as busy:
            assert busy.stdout
            assert busy.stdout.readline() == "done\n"
            # Whoever else is at work here is in both differences.
            seen = others_for(stranger) - theirs
            while_it_runs = Crowd.read().others - ours
        once_it_has_ended = Crowd.read().others - ours - (others_for(stranger) - theirs)
    assert seen - while_it_runs > 1.2
    assert once_it_has_ended < -1.2


def test_a_share_is_at_most_all_there_is() -> None:
    assert Crowd(others=1e6, now=11.0).share_since(Crowd(others=0.0, now=1.0)) == 1.0
    assert Crowd(others=0.0, now=11.0).share_since(Crowd(others=1.0, now=1.0)) == 0.0
