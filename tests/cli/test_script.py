"""Test a script as a workload, next to its manifest."""

import json
from pathlib import Path

import pytest

from cli.command import ROOT, accelbench

MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: mine}
spec:
  workload: {script: {configMapKeyRef: {name: my-workloads, key: softmax_rows.py}}, parameters: {rows: 8}}
  variants: [{use: pytorch/eager}, {use: jax/jit}]
  measurement: {rounds: {min: 3, max: 3}, timeLimitSeconds: 60}
"""
FUNCTIONS = """
def arrays(rng):
    return {"x": rng.standard_normal(8)}

def jax(x):
    return x

def pytorch(x):
    return x

"""
PRINTS = """
import os, sys
os.mkdir("gone")
os.chdir("gone")
os.rmdir("../gone")
print("to a stream")
os.write(1, b"to a descriptor")
sys.stdout.close()
os.close(1)
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """Return a directory with a manifest and the script that it names."""
    directory = tmp_path / "mine"
    directory.mkdir()
    (directory / "mine.yaml").write_text(MANIFEST)
    (directory / "softmax_rows.py").write_text((ROOT / "examples" / "softmax_rows.py").read_text())
    return directory


def test_a_copy_of_the_script_next_to_the_results_is_measured(mine: Path, tmp_path: Path) -> None:
    done = accelbench("run", "mine/mine.yaml", "--out", "out", cwd=tmp_path, play="good")
    kept = tmp_path / "out" / "softmax_rows.py"
    assert done.returncode == 0, done.stderr
    assert kept.read_text() == (mine / "softmax_rows.py").read_text()
    assert f"script {kept}\n" in (tmp_path / "out" / "all.log").read_text()
    assert "softmax-rows (rows 8)" in done.stdout


def test_the_parameters_of_a_script_are_checked_before_anything_runs(mine: Path) -> None:
    done = accelbench("validate", "mine.yaml", cwd=mine)
    assert done.returncode == 0, done.stderr
    (mine / "mine.yaml").write_text(MANIFEST.replace("rows: 8", "row: 8"))
    done = accelbench("validate", "mine.yaml", cwd=mine)
    assert done.returncode == 3
    assert "spec.workload.parameters.row: " in done.stderr


def test_a_script_is_described_like_a_workload_of_the_catalogue(mine: Path) -> None:
    done = accelbench("workloads", "softmax_rows.py", cwd=mine)
    assert done.returncode == 0, done.stderr
    assert "softmax-rows" in done.stdout
    assert "columns" in done.stdout


def test_a_missing_script_is_named(mine: Path) -> None:
    (mine / "softmax_rows.py").unlink()
    done = accelbench("run", "mine.yaml", cwd=mine)
    assert done.returncode == 3
    assert f"{mine / 'softmax_rows.py'}" in done.stderr


def test_a_mistake_in_a_script_is_reported_with_its_line(mine: Path) -> None:
    with (mine / "softmax_rows.py").open("a") as script:
        script.write("import torch\n")
    done = accelbench("run", "mine.yaml", cwd=mine)
    assert done.returncode == 3
    assert "softmax_rows.py, line " in done.stderr
    assert "imports torch" in done.stderr


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_script_that_ends_the_process_is_refused_with_its_line(mine: Path, command: str) -> None:
    script = mine / "softmax_rows.py"
    script.write_text("import sys\n\nsys.exit(0)\n" + script.read_text())
    done = accelbench(command, "mine.yaml", cwd=mine)
    assert done.returncode == 3
    assert "line 3: SystemExit:" in done.stderr


def test_output_of_a_script_goes_to_standard_error_once(tmp_path: Path) -> None:
    (tmp_path / "prints.py").write_text(FUNCTIONS + PRINTS)
    shown = accelbench("workloads", "prints.py", "--output", "json", cwd=tmp_path)
    assert json.loads(shown.stdout)["name"] == "prints"
    assert [shown.stderr.count(text) for text in ("to a stream", "to a descriptor")] == [1, 1]


@pytest.mark.parametrize(("ends", "how"), [("os._exit(0)", "status 0"), ("os.abort()", "signal 6")])
def test_a_script_that_ends_the_process_is_refused(ends: str, how: str, tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text(f"import os\n{FUNCTIONS}{ends}\n")
    refused = accelbench("check", "ends.py", cwd=tmp_path)
    assert refused.returncode == 3
    assert f"ends.py ends the process that loads it, with {how}; what stands at its top runs" in refused.stderr
