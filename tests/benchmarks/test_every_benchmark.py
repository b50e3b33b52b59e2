"""Benchmarks run with today's accelbench."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
IMPORTING = """
import runpy, sys, traceback
failed = []
for file in sys.argv[1:]:
    try:
        runpy.run_path(file, run_name="imported")
    except Exception:
        failed.append(file)
        traceback.print_exc()
sys.exit(", ".join(failed) or 0)
"""
MEASURING = """
from benchmarks.parity.corpus import PROGRAMS
from benchmarks.parity.measure import measure
program = next(program for program in PROGRAMS if program.name == "layer normalisation")
rows, cost = measure(program, "float32", seed=1)
for row in rows:
    found = {row.now.parity, row.now.formula}
    match row.output.kind:
        case "right":
            assert found == {"passed"}, row
        case "written":
            assert "failed" in found, row
        case "injected" if row.output.size == 0.1:
            assert row.now.parity == "failed", row
assert cost.now > cost.run > 0, cost
"""


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join(str(ROOT / folder) for folder in ("benchmarks", "tests", "."))
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_every_benchmark_finds_what_it_imports() -> None:
    done = run(IMPORTING, *sorted(str(path) for path in (ROOT / "benchmarks").glob("*.py")))
    assert done.returncode == 0, done.stderr


def test_the_benchmark_of_parity_tells_right_outputs_from_wrong_ones() -> None:
    done = run(MEASURING)
    assert done.returncode == 0, done.stderr
