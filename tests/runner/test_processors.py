"""Test the processor time of other processes: neither this one's, nor its descendants'."""

import subprocess
import sys

import pytest

from accelbench_runner.supervisor import processors
from accelbench_runner.supervisor.processors import CpuUse

USED_SECONDS = 0.5
BUSY = f"""
import time
while time.process_time() < {USED_SECONDS}: pass
print("done", flush=True)
input()
"""
NESTED = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BUSY!r}])"


@pytest.fixture
def busy_seconds(monkeypatch: pytest.MonkeyPatch) -> float:
    """Return the total busy time of all processors since boot."""
    each = 1e6
    monkeypatch.setattr(processors, "_busy_seconds", lambda: dict.fromkeys(range(4096), each))
    return each * len(CpuUse.read().cpus)


def test_processor_time_of_descendants_does_not_count_as_other_load(busy_seconds: float) -> None:
    own_before = busy_seconds - CpuUse.read().others_seconds
    with subprocess.Popen(
        [sys.executable, "-c", NESTED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as busy:
        assert busy.stdout
        assert busy.stdout.readline() == "done\n"
        own_while_it_runs = busy_seconds - CpuUse.read().others_seconds
        busy.communicate("\n")
    own_after = busy_seconds - CpuUse.read().others_seconds
    assert own_while_it_runs - own_before > 0.9 * USED_SECONDS
    assert own_after - own_before > 0.9 * USED_SECONDS


def share(before: CpuUse, after: CpuUse) -> float:
    return after.others_share_since(before)


def test_a_share_refers_to_all_processors_and_is_at_most_1() -> None:
    two, four = frozenset({0, 1}), frozenset({0, 1, 2, 3})
    assert share(CpuUse(0.0, 1.0, two), CpuUse(10.0, 11.0, two)) == 0.5
    assert share(CpuUse(0.0, 1.0, two), CpuUse(1e6, 11.0, two)) == 1.0
    assert share(CpuUse(1.0, 1.0, two), CpuUse(0.0, 11.0, two)) == 0.0
    # The counters of other processors began at boot.
    assert share(CpuUse(0.0, 1.0, two), CpuUse(10.0, 11.0, four)) == 0.0
