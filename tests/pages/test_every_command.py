"""Every command that a page shows is one that a test runs."""

from __future__ import annotations

import re

import pytest

from pages.page import NOT_PAGES, ROOT, Command, File, Page, _steps, pages
from pages.table import ELSEWHERE, RUN, SHELL

OF_THE_README = {"make demo", "accelbench compare", "accelbench claims"}
"""examples/demo.sh, tests/cli/test_compare.py, tests/claims."""
SHOWN = {path: page for path in pages() if (page := Page.read(path)).commands}


@pytest.mark.parametrize("path", [path for path in SHOWN if path not in ELSEWHERE])
def test_each_command_is_under_a_heading_that_is_run(path: str) -> None:
    run = {heading for headings in RUN.get(path, {}).values() for heading in headings}
    assert [command.text for command in SHOWN[path].commands if command.heading not in run] == []


@pytest.mark.parametrize("path", RUN)
def test_a_heading_that_is_run_is_on_its_page(path: str) -> None:
    page = Page.read(path)
    there = {step.heading for step in page.steps}
    assert {heading for headings in RUN[path].values() for heading in headings} <= there


def test_no_page_is_left_to_others_that_has_no_command() -> None:
    assert set(ELSEWHERE) <= set(SHOWN)


def test_the_readme_shows_no_command_that_no_page_runs() -> None:
    run = {_named(command.text) for path, page in SHOWN.items() if path != "README.md" for command in page.commands}
    assert {_named(command.text) for command in SHOWN["README.md"].commands} - run <= OF_THE_README


def test_the_readme_leads_to_a_cluster_s_first_verdict_by_the_commands_that_a_test_runs() -> None:
    """The start page's, whole and in its order: tests/pages/test_node.py runs them on a real node."""
    own, run = (
        [command.text for command in Page.read(path).commands if command.heading == "In a cluster"]
        for path in ("README.md", "docs/start.md")
    )
    assert own[:3] == run[:3]
    assert set(own[3:]) <= {
        command.text for page in SHOWN.values() if page.path != "README.md" for command in page.commands
    }


def test_no_block_of_commands_escapes_for_want_of_a_dollar_sign() -> None:
    """What a block without it holds is run by somebody, or the table says that nobody does."""
    files = [path for path in ROOT.glob("**/*.md") if not {".venv", "node_modules", "build"} & set(path.parts)]
    names = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(r"^ *`{3,}(?:sh|bash)$", path.read_text(), re.MULTILINE)
    }
    assert {name for name in names if not name.startswith(NOT_PAGES)} == set(SHELL)


def test_a_page_is_read_as_a_reader_would() -> None:
    steps = tuple(
        _steps("## Do it\n\n`a.txt`:\n```text\nx\n```\n```console\n$ cat a.txt \\\n  b  # both\nx ...\n```\n")
    )
    assert steps == (File("Do it", "a.txt", "x\n"), Command("Do it", "cat a.txt \\\n  b", "x ...\n"))


def _named(command: str) -> str:
    """The program and what it is to do: `accelbench run`."""
    return " ".join(command.split()[:2])
