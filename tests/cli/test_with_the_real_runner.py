"""Run the real runner on tiny products: two frameworks, three rounds. Assert what holds under any load.

Times, verdicts and their exit codes depend on the machine; tests/golden holds them with simulated measurements.
"""

import json
import re
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from accelbench.api.result import Result
from accelbench.local.exits import Exit
from cli.command import MANIFEST, accelbench, started
from cluster.wait import HANG_SECONDS, wait_until


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    directory = tmp_path_factory.mktemp("real")
    # Noise is accepted, so that a busy machine does not repeat rounds until the time limit.
    options = ("--accept-noise", "--processors", "1", "--set", f"measurement.timeLimitSeconds={HANG_SECONDS}")
    return directory, accelbench("run", "-", "--out", "out", *options, cwd=directory, manifest=MANIFEST)


@pytest.mark.slow
def test_two_frameworks_are_measured_compared_and_judged(
    ran: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, done = ran
    assert done.returncode in {Exit.SUCCESS, Exit.NOISY, Exit.INVALID_MEASUREMENT}, done.stderr
    result = Result.model_validate_json((directory / "out" / "all.result.json").read_text())
    assert result.complete, done.stderr
    [comparison] = result.comparisons
    assert (comparison.variant, comparison.baseline) == ("jax/jit", "pytorch/eager")
    assert {variant.name for variant in result.variants if variant.failure is None} == {"pytorch/eager", "jax/jit"}
    assert {path.name for path in (directory / "out").iterdir()} >= {"run.json", "report.md", "all.log"}
    parity = [check for check in result.certificate.checks if check.name == "parity"]
    assert {check.outcome for check in parity} == {"passed"}
    assert {"version.jax", "version.torch", "workloadSource"} <= result.fingerprint.keys()
    assert {"parameter.length", "precision", "seed"} <= result.fingerprint.keys()
    assert result.fingerprint["cpusUsed"] == "1"


@pytest.mark.slow
def test_the_terminal_shows_every_phase_and_the_fingerprint(
    ran: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, done = ran
    # The names of processor and machine decide where lines break.
    shown = " ".join(done.stdout.split())
    for column in ("import", "compile", "steady", "speedup", "interval", "verdict"):
        assert column in shown
    assert re.search(r"JAX \d+\.\d+", shown)
    assert re.search(r"PyTorch \d+\.\d+", shown)


@pytest.mark.slow
def test_every_launch_is_kept_with_its_blocks_in_full(ran: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    directory, _ = ran
    result = Result.model_validate_json((directory / "out" / "all.result.json").read_text())
    launches = [json.loads(line) for line in (directory / "out" / "all.launches.jsonl").read_text().splitlines()]
    measured = result.rounds + len(result.quarantined)
    assert sorted((launch["round"], launch["variant"]) for launch in launches) == [
        (number, variant) for number in range(1, measured + 1) for variant in ("jax/jit", "pytorch/eager")
    ]
    assert all(block["seconds"] > 0 and block["units"] > 0 for launch in launches for block in launch["blocks"])


@pytest.mark.slow
def test_a_missing_framework_fails_its_variant_and_the_message_explains_how_to_install_it(tmp_path: Path) -> None:
    missing = tmp_path / "missing" / "torch"
    missing.mkdir(parents=True)
    (missing / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    manifest = MANIFEST.replace("jax/jit", "numpy/eager").replace("timeLimitSeconds: 60", "timeLimitSeconds: 900")
    done = accelbench(
        *("run", "-", "--accept-noise", "--out", "out"),
        cwd=tmp_path,
        manifest=manifest,
        PYTHONPATH=str(tmp_path / "missing"),
    )
    assert done.returncode == Exit.VARIANT_FAILED
    assert "accelbench[torch]" in done.stdout
    result = Result.model_validate_json((tmp_path / "out" / "all.result.json").read_text())
    failures = {variant.name: variant.failure.reason for variant in result.variants if variant.failure}
    assert failures["pytorch/eager"] == "Unsupported"


def compiling(directory: Path, process: subprocess.Popen[str]) -> tuple[str, str]:
    """Wait until a launch compiles, and return the process IDs of the runner and the launch."""
    log = directory / "out" / "all.log"
    wait_until(
        lambda: log.exists() and '"phase":"compile"' in log.read_text(),
        what="a launch that compiles",
        every_seconds=0.02,
    )
    runner = child_of(process.pid)
    return runner, child_of(int(runner))


def child_of(pid: int) -> str:
    [child] = psutil.Process(pid).children()
    return str(child.pid)


@pytest.mark.slow
def test_the_runner_and_its_launch_end_when_the_command_is_killed(tmp_path: Path) -> None:
    (tmp_path / "chain.yaml").write_text(MANIFEST)
    with started("run", "chain.yaml", "--out", "out", cwd=tmp_path) as process:
        pids = compiling(tmp_path, process)
        process.kill()
        process.communicate(timeout=HANG_SECONDS)
        for pid in pids:
            wait_until(lambda pid=pid: not Path("/proc", pid).exists(), what=f"process {pid} to end")
    assert not [pid for pid in pids if Path("/proc", pid).exists()]


@pytest.mark.slow
def test_ctrl_c_ends_every_launch_and_keeps_a_partial_result(tmp_path: Path) -> None:
    (tmp_path / "chain.yaml").write_text(MANIFEST)
    with started("run", "chain.yaml", "--out", "out", cwd=tmp_path) as process:
        _, launch = compiling(tmp_path, process)
        process.send_signal(signal.SIGINT)
        wait_until(lambda: not Path("/proc", launch).exists(), what="the launch to end", every_seconds=0.02)
        shown, _ = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == Exit.INTERRUPTED
    assert "partial: interrupted" in shown
    assert json.loads((tmp_path / "out" / "all.result.json").read_text())["complete"] is False
