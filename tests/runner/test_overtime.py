"""Test that a supervisor that hangs ends itself: its pod's own deadline includes the time to start, a day."""

import subprocess
import sys
from pathlib import Path

from runner.supervision import case_of

HANGS = """
import re, sys
from accelbench.api import case
from accelbench_runner.__main__ import main

case.OVERTIME_SECONDS = 0.3
sys.exit(main(sys.argv[1:], take_survey=lambda _: re.match("(a|aa)+$", "a" * 80 + "b")))
"""
"""Its survey hangs in C code, with the lock of the interpreter."""


def test_a_supervisor_that_hangs_ends_itself_after_its_limit_and_logs_where_it_was(tmp_path: Path) -> None:
    document = tmp_path / "case.json"
    document.write_text(case_of("fine", "fine_2", limit=0).to_json())
    done = subprocess.run(
        [sys.executable, "-c", HANGS, str(document)], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert "_warn_of_disturbances" in done.stderr
