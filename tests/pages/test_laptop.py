"""The commands of the pages for laptops work, from `pip install` on."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from pages.machine import checkout, python_environment, wheel
from pages.page import ROOT, SHORT_COMPARE, Command, Page
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


def the_cells(directory: Path, environment: dict[str, str]) -> None:
    """Run each cell with what the page shows of it, on a machine that tests keep busy; a notebook shows its report."""
    for cell in sorted(directory.glob("*.py")):
        text = cell.read_text().replace("    arrays=", f"    {SHORT_COMPARE}\n    arrays=")
        (directory / "shown.txt").write_text(shown_below(cell.name))
        program = f"{text}\nprint(found._repr_html_()[:7])\n{DOCTEST}"
        done = subprocess.run(
            ["python", "-c", program], cwd=directory, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("<iframe"), done.stderr


def shown_below(name: str) -> str:
    """Return the examples below a file of the notebook's page, up to the next heading."""
    page = (ROOT / "docs" / "tutorials" / "notebook.md").read_text()
    section = page.partition(f"`{name}`:")[2].partition("\n## ")[0]
    return "\n".join(re.findall(r"```pycon\n(.*?)```", section, re.DOTALL))


DOCTEST = """
import doctest
shown = doctest.DocTestParser().get_doctest(open("shown.txt").read(), globals(), "notebook.md", None, 0)
raise SystemExit(doctest.DocTestRunner().run(shown).failed)
"""

BEYOND: dict[str, Callable[[Path, dict[str, str]], None]] = {
    "docs/tutorials/ci-gate.md": the_gate,
    "docs/tutorials/notebook.md": the_cells,
}
"""What a page shows that is no command of its own."""


@pytest.mark.nightly
def test_packages_that_messages_recommend_can_be_installed_with_a_checkout(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The extra comes from where packages are. accelbench itself is nowhere, and is the one that is installed."""
    nowhere = environment | {"PIP_FIND_LINKS": ""}
    hint = Command("", "pip install 'accelbench[report]'", "")
    with pytest.raises(AssertionError, match="No matching distribution found for accelbench"):
        hint.run(tmp_path, nowhere)
    Command("", "pip install .", "").run(checkout(tmp_path / "accelbench"), environment)
    assert "Requirement already satisfied: matplotlib" in hint.run(tmp_path, nowhere)


@pytest.mark.parametrize("path", on_a_push(PAGES, lambda path: path == "docs/start.md"))
def test_the_commands_of_a_page_do_what_the_page_describes(
    path: str, environment: dict[str, str], tmp_path: Path
) -> None:
    page = Page.read(path)
    directory = tmp_path / "here"
    if page.asks_for_a_checkout:
        checkout(directory)
    else:
        directory.mkdir()
    page.run(directory, environment, *PAGES[path])
    if beyond := BEYOND.get(path):
        beyond(directory, environment)
