"""Test that lack of memory and a kill are different failures, in a real control group."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accelbench.machine import cgroup
from runner.supervision import Ended, case_of

LIMIT_BYTES = 256 * 1024 * 1024


@pytest.fixture
def group_with_a_limit() -> Iterator[Path]:
    """Yield a control group below our own with a memory limit and no swap."""
    own = cgroup.find("memory")
    if own is None:
        pytest.skip("no memory controller here")
    directory = own.directory / f"accelbench-test-{os.getpid()}"
    limit = "memory.max" if own.version == 2 else "memory.limit_in_bytes"
    swap = "memory.swap.max" if own.version == 2 else "memory.memsw.limit_in_bytes"
    try:
        directory.mkdir()
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    try:
        try:
            (directory / limit).write_text(str(LIMIT_BYTES))
        except OSError as error:
            pytest.skip(f"the memory controller is not delegated to us: {error}")
        if (directory / swap).exists():
            (directory / swap).write_text("0" if own.version == 2 else str(LIMIT_BYTES))
        yield directory
    finally:
        directory.rmdir()


def entering(group: Path) -> list[str]:
    """Return a command that enters the group and becomes the command that follows it."""
    return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(group / "cgroup.procs")]


def test_a_case_that_runs_out_of_memory_keeps_the_other_variants_results(
    run: Callable[..., Ended], group_with_a_limit: Path
) -> None:
    ended = run(case_of("fine", "takes-memory", "killed", "fine_2"), wrapper=entering(group_with_a_limit))
    taking, killed = ended.variant("takes-memory").failure, ended.variant("killed").failure
    assert taking is not None
    assert killed is not None
    assert taking.reason == "OutOfMemory"
    assert killed.reason == "Killed"
    assert len(ended.variant("fine").launches) == len(ended.variant("fine_2").launches) == 2
    assert ended.result.fingerprint["memoryLimitBytes"] == str(LIMIT_BYTES)


@pytest.mark.slow
def test_a_launch_that_stalls_for_lack_of_memory_has_run_out_of_memory(
    run: Callable[..., Ended], group_with_a_limit: Path
) -> None:
    case = case_of("fine", "reads-again", "hangs", limit=15, rounds=3, rounds_min=3)
    ended = run(case, wrapper=entering(group_with_a_limit))
    reading, hanging = ended.variant("reads-again").failure, ended.variant("hangs").failure
    assert reading is not None
    assert hanging is not None
    assert reading.reason == "OutOfMemory"
    assert "MiB were read again, the limit is 256 MiB" in reading.message
    assert hanging.reason == "TimedOut"
    assert len(ended.variant("fine").launches) >= 1
