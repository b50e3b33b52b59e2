"""A framework that no file of accelbench knows is checked, measured and judged like ours."""

import json
import os
from pathlib import Path

import pytest

from accelbench import frameworks
from accelbench.api.result import Result
from accelbench.frameworks import UnknownFrameworkError
from cli.command import ROOT, accelbench

MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: damping}
spec:
  workload: {name: damping}
  variants: [{use: numpy/eager}, {use: lists/eager}]
  measurement: {precision: float64, rounds: {min: 3, max: 3}, timeLimitSeconds: 900}
"""
ENTRY_POINTS = """\
[accelbench.frameworks]
lists = third_framework.descriptor:FRAMEWORK
broken = third_framework.nowhere:FRAMEWORK
misnamed = third_framework.descriptor:FRAMEWORK
[accelbench.workloads]
damping = third_framework.workload:Damping
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A directory in which a distribution declares the framework and the workload."""
    about = tmp_path / "site" / "third_framework-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: third-framework\nVersion: 1\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    return os.pathsep.join([str(tmp_path / "site"), str(ROOT / "tests")])


@pytest.mark.slow
def test_a_third_framework_is_checked_like_the_others(path: str, tmp_path: Path) -> None:
    manifest = tmp_path / "damping.yaml"
    manifest.write_text(MANIFEST)
    done = accelbench("check", str(manifest), "--output", "json", cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 0, done.stdout
    [case] = json.loads(done.stdout)
    outcomes = {
        variant["name"]: {check["name"]: check["outcome"] for check in variant["checks"]}
        for variant in case["variants"]
    }
    assert outcomes.keys() == {"numpy/eager", "lists/eager"}
    for checks in outcomes.values():
        assert "failed" not in checks.values()
        assert (checks["parity"], checks["depends-on-inputs"]) == ("passed", "passed")


@pytest.mark.slow
def test_a_third_framework_is_measured_and_compared(path: str, tmp_path: Path) -> None:
    options = ("--accept-noise", "--processors", "1")
    done = accelbench("run", "-", *options, "--out", "out", cwd=tmp_path, manifest=MANIFEST, PYTHONPATH=path)
    result = Result.model_validate_json((tmp_path / "out" / "all.result.json").read_text())
    assert result.complete, done.stderr
    assert [comparison.variant for comparison in result.comparisons] == ["lists/eager"]
    assert {check.outcome for check in result.certificate.checks if check.name == "parity"} == {"passed"}


def test_a_variant_of_a_broken_framework_is_refused_with_the_problem(path: str, tmp_path: Path) -> None:
    refused = {"broken": "nowhere", "misnamed": "not a Framework of that name", "list": "did you mean lists?"}
    for name, why in refused.items():
        wrong = MANIFEST.replace("use: lists/eager", f"use: {name}/eager")
        (tmp_path / "wrong.yaml").write_text(wrong)
        done = accelbench("validate", "wrong.yaml", cwd=tmp_path, PYTHONPATH=path)
        assert done.returncode == 3, done.stdout
        assert why in done.stderr


def test_built_in_frameworks_are_found_by_name_and_none_is_imported() -> None:
    assert set(frameworks.names()) >= {"jax", "numpy", "pytorch"}
    assert frameworks.find("pytorch").package == "torch"
    with pytest.raises(UnknownFrameworkError, match="did you mean jax"):
        frameworks.find("jaxx")
