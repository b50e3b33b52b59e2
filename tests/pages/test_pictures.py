"""A picture of a terminal shows a command that a reader can run."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys

from accelbench.local.manifests import read
from pages.page import ROOT

MAKE = ROOT / "docs" / "images" / "make.py"
MEASURED = "tests/data/claims/cpu/24-retrace-traps"


def test_the_terminal_shows_the_verdict_of_an_existing_file() -> None:
    text = html.unescape((ROOT / "docs" / "images" / "verdict.svg").read_text()).replace("\xa0", " ")
    [title] = re.findall(r'class="verdict-title"[^>]*>([^<]+)<', text)
    accelbench, does, manifest, *_ = shlex.split(title)
    [run] = read(str(ROOT / manifest))
    assert (accelbench, does) == ("accelbench", "run")
    parameters = ", ".join(f"{name} {value}" for name, value in run.spec.workload.parameters.items())
    assert f">{run.spec.workload.name} ({parameters}), {run.spec.measurement.precision}, cpu<" in text


def test_an_image_is_not_drawn_below_another_command() -> None:
    asked = [sys.executable, MAKE, "verdict", MEASURED, "examples/01-matmul-chain.yaml"]
    done = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stderr == f"examples/01-matmul-chain.yaml is not what was run for {MEASURED}\n"
    assert done.returncode == 1
