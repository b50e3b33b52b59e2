"""Rows 68 and 69 end with a table that the page can show; NVML is played, and JAX computes on the CPU."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cluster.wait import HANG_SECONDS
from devices.gpu import library
from gpu_visit.items import ROOT
from gpu_visit.page import program_section

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # many processes that import JAX; only a GPU gives them a meaning
SETTING = {"jax": "0.11.2", "driver": "580.1"}


def printed(directory: Path, question: str) -> dict[str, Any]:
    memory = directory / "gpu.txt"
    memory.write_text("memoryTotal 80000000000\nmemoryUsed 500000000\n")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "preallocation.py"), question, *SMALL.get(question, ())],
        env={**os.environ, "LD_LIBRARY_PATH": str(library()), "FAKE_NVML": str(memory), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


SMALL = {"steps": ("--rounds", "2", "--width", "64")}


@pytest.mark.parametrize(("question", "rows"), [("share", 3), ("steps", 6)])
def test_a_program_ends_with_a_table_for_the_page(tmp_path: Path, question: str, rows: int) -> None:
    document = printed(tmp_path, question)
    assert len(document["rows"]) == rows
    assert {len(row) for row in document["rows"]} == {len(document["columns"])}
    page = "\n\n".join(program_section({"printed": document, "setting": SETTING}))
    assert all(str(row[0]) in page for row in document["rows"])
