"""What the pages have readers do on a laptop works there, from `pip install` on."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from pages.machine import checkout, python_environment, wheel
from pages.page import SHORT_COMPARE, Command, Page
from pages.table import RUN
from tiers import on_a_push

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.slow

PAGES = {path: places["laptop"] for path, places in RUN.items() if "laptop" in places}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("packages") / "wheels")


@pytest.fixture
def environment(packages: Path, tmp_path: Path) -> dict[str, str]:
    return python_environment(tmp_path / "environment", packages)


def the_gate(directory: Path, environment: dict[str, str]) -> None:
    """Every step of the workflow that is a command, as the job would run it."""
    workflow = yaml.safe_load((directory / ".github" / "workflows" / "gate.yaml").read_text())
    summary = directory / "summary.md"
    for step in workflow["jobs"]["gate"]["steps"]:
        if "run" in step:
            Command("", step["run"], "").run(directory, environment | {"GITHUB_STEP_SUMMARY": str(summary)})
    assert "softmax" in summary.read_text()
    assert (directory / "gate" / "report.html").exists()


def the_cell(directory: Path, environment: dict[str, str]) -> None:
    """The cell, on a machine that tests keep busy, and what a notebook would show of it."""
    cell = (directory / "cell.py").read_text()
    cell = cell.replace("    variants=", f"    {SHORT_COMPARE}\n    variants=")
    program = f"{cell}\nprint(found._repr_html_()[:7], found.result.case.workload, found.directory)"
    told = subprocess.run(
        ["python", "-c", program], cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    assert told.stdout.startswith("<iframe"), told.stderr


BEYOND: dict[str, Callable[[Path, dict[str, str]], None]] = {
    "docs/tutorials/ci-gate.md": the_gate,
    "docs/tutorials/notebook.md": the_cell,
}
"""What a page shows that is no command of its own."""


@pytest.mark.nightly
def test_what_a_message_says_to_install_can_be_installed_beside_a_checkouts(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The extra comes from where packages are. accelbench itself is nowhere, and is the one that is installed."""
    nowhere = environment | {"PIP_FIND_LINKS": ""}
    hint = Command("", "pip install 'accelbench[report]'", "")
    with pytest.raises(AssertionError, match="No matching distribution found for accelbench"):
        hint.run(tmp_path, nowhere)
    Command("", "pip install .", "").run(checkout(tmp_path / "accelbench"), environment)
    assert "Requirement already satisfied: matplotlib" in hint.run(tmp_path, nowhere)


@pytest.mark.parametrize("path", on_a_push(PAGES, lambda path: path == "docs/tutorials/laptop.md"))
def test_a_page_does_what_it_says(path: str, environment: dict[str, str], tmp_path: Path) -> None:
    page = Page.read(path)
    directory = tmp_path / "here"
    if page.asks_for_a_checkout:
        checkout(directory)
    else:
        directory.mkdir()
    page.run(directory, environment, *PAGES[path])
    if beyond := BEYOND.get(path):
        beyond(directory, environment)
