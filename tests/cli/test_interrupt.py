"""Send Ctrl-C and SIGTERM to a process whose runner has a child of its own."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from accelbench.local.exits import Exit
from cli.command import MANIFEST, started
from cluster.wait import HANG_SECONDS, wait_until


def wait_for(path: Path, text: str) -> str:
    """Wait for a line of `path` that begins with `text`, and return its last word."""

    def last_words() -> list[str]:
        lines = path.read_text().splitlines() if path.exists() else []
        return [line.split()[-1] for line in lines if line.startswith(text)]

    wait_until(last_words, what=f"{path.name} to say {text}", every_seconds=0.02)
    return last_words()[0]


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.fixture
def manifest(tmp_path: Path) -> Path:
    (tmp_path / "run.yaml").write_text(MANIFEST)
    return tmp_path / "run.yaml"


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.TERMINATED)], ids=str
)
def test_a_signal_ends_every_child_and_keeps_what_was_measured(
    tmp_path: Path, manifest: Path, number: signal.Signals, code: Exit
) -> None:
    with started("run", manifest.name, "--out", "out", cwd=tmp_path, play="patient", drawn=True) as process:
        child = int(wait_for(tmp_path / "out" / "all.log", "child "))
        process.send_signal(number)
        wait_until(lambda: not is_running(child), what="the runner's child to end", every_seconds=0.02)
        shown, errors = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == code
    assert "partial: interrupted" in shown, errors
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["exitCode"] == code
    assert json.loads((tmp_path / "out" / "all.result.json").read_text())["complete"] is False
    for report in ("report.md", "report.html"):
        assert "partial: interrupted" in (tmp_path / "out" / report).read_text()


def test_cases_that_an_interrupted_sweep_never_reached_are_named(tmp_path: Path, manifest: Path) -> None:
    swept = "  sweep: [{name: length, values: [4, 5, 6]}]\n"
    manifest.write_text(MANIFEST.replace(", length: 4", "").replace("spec:\n", f"spec:\n{swept}"))
    with started("run", manifest.name, "--out", "out", cwd=tmp_path, play="patient") as process:
        wait_until(lambda: list((tmp_path / "out").glob("length-4*.log")), what="the first case to begin")
        [log] = (tmp_path / "out").glob("length-4*.log")
        wait_for(log, "child ")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG_SECONDS)
    _, *others = json.loads((tmp_path / "out" / "run.json").read_text())["cases"]
    assert f"not reached: {', '.join(others)}\n" in errors


def test_a_second_signal_kills_a_runner_that_does_not_listen(tmp_path: Path, manifest: Path) -> None:
    with started("run", manifest.name, "--out", "out", cwd=tmp_path, play="stubborn") as process:
        child = int(wait_for(tmp_path / "out" / "all.log", "child "))
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=0.5)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == Exit.INTERRUPTED
    assert not is_running(child)
    assert (tmp_path / "out" / "run.json").exists()


def test_a_signal_to_the_terminals_group_reaches_the_runner_once(tmp_path: Path, manifest: Path) -> None:
    with started("run", manifest.name, "--out", "out", cwd=tmp_path, play="patient") as process:
        child = int(wait_for(tmp_path / "out" / "all.log", "child "))
        assert os.getpgid(child) != os.getpgid(process.pid)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == Exit.INTERRUPTED
