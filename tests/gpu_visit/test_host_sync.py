"""Row 65 ends with a table that the page can show; the frameworks compute on the CPU."""

import json
import os
import subprocess
import sys

import pytest

from cluster.wait import HANG_SECONDS
from gpu_visit.items import ROOT
from gpu_visit.page import program_section

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # many processes that import frameworks; only a GPU has a meaning
SETTING = {"jax": "0.11.2", "driver": "580.1"}


def test_each_reading_of_each_framework_has_a_row_on_the_page() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "host_sync.py"), "--rounds", "2", "--widths", "16"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert [(row[0], row[2]) for row in document["rows"]] == [
        (framework, reading)
        for framework in ("jax", "pytorch")
        for reading in ("never", "after every tenth step", "after each step")
    ]
    page = "\n\n".join(program_section({"printed": document, "setting": SETTING}))
    assert all(str(row[-1]) in page for row in document["rows"])
