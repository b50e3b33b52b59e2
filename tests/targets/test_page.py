"""The commands of the page on targets work with the installed compilers and without a device."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pages.page import Page
from targets import compilers

pytestmark = [pytest.mark.slow, pytest.mark.nightly]  # other pages, and test_compiling.py, are for a push


def test_the_commands_of_the_page_on_targets_work(tmp_path: Path) -> None:
    """All but `pip install`, which a test of another page runs; the compilers are there already."""
    page = Page.read("docs/tutorials/targets.md")
    kept = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "FORCE_COLOR"}}
    installed = os.pathsep.join([str(Path(sys.executable).parent), kept["PATH"]])
    page.run(tmp_path, kept | {"PATH": installed, "PYTHONPATH": compilers.path()}, "Ask", "Keep the question")
