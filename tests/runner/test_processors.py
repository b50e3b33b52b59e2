"""Who takes the processors that a launch may run on: neither we, nor what descends from us."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator

from accelbench_runner.supervisor.processors import ProcessorUse

BUSY = """
import time
while time.process_time() < 3.0: pass
print("done", flush=True)
input()
"""
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"
STRANGER = """
from accelbench_runner.supervisor.processors import ProcessorUse
while True:
    input()
    print(ProcessorUse.read().others_seconds, flush=True)
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
        theirs, ours = others_for(stranger), ProcessorUse.read().others_seconds
        with started(NESTED) as busy:
            assert busy.stdout
            assert busy.stdout.readline() == "done\n"
            # Whoever else is at work here is in both differences.
            seen = others_for(stranger) - theirs
            while_it_runs = ProcessorUse.read().others_seconds - ours
        once_it_has_ended = ProcessorUse.read().others_seconds - ours - (others_for(stranger) - theirs)
    assert seen - while_it_runs > 2.0
    assert once_it_has_ended < -2.0


def share(before: ProcessorUse, after: ProcessorUse) -> float:
    return after.others_share_since(before)


def test_a_share_is_of_all_processors_and_at_most_all_there_is() -> None:
    two, four = frozenset({0, 1}), frozenset({0, 1, 2, 3})
    assert share(ProcessorUse(0.0, 1.0, two), ProcessorUse(10.0, 11.0, two)) == 0.5
    assert share(ProcessorUse(0.0, 1.0, two), ProcessorUse(1e6, 11.0, two)) == 1.0
    assert share(ProcessorUse(1.0, 1.0, two), ProcessorUse(0.0, 11.0, two)) == 0.0
    # The counters of other processors began at boot.
    assert share(ProcessorUse(0.0, 1.0, two), ProcessorUse(10.0, 11.0, four)) == 0.0
