"""Every command that a page shows is one that a test runs."""

from __future__ import annotations

import re

import pytest

from pages.page import NOT_PAGES, REGISTRY, ROOT, Command, File, Page, _steps, pages
from pages.table import ELSEWHERE, FOR_BREVITY, RUN, SHELL

SHOWN = {path: page for path in pages() if (page := Page.read(path)).commands}
INSTALLATION = re.compile(r"\bhelm install (?:.*\\\n)*.*")
"""Continuation lines included."""


@pytest.mark.parametrize("path", [path for path in SHOWN if path not in ELSEWHERE])
def test_each_command_is_under_a_heading_with_a_test(path: str) -> None:
    run = {heading for headings in RUN.get(path, {}).values() for heading in headings}
    assert [command.text for command in SHOWN[path].commands if command.heading not in run] == []


@pytest.mark.parametrize("path", RUN)
def test_a_heading_with_a_test_is_on_its_page(path: str) -> None:
    page = Page.read(path)
    there = {step.heading for step in page.steps}
    assert {heading for headings in RUN[path].values() for heading in headings} <= there


def test_every_page_excluded_from_the_tests_has_a_command() -> None:
    assert set(ELSEWHERE) <= set(SHOWN)


def test_every_command_of_the_readme_is_tested_on_a_page() -> None:
    run = {_flat(command.text) for path, page in SHOWN.items() if path != "README.md" for command in page.commands}
    assert {_flat(command.text) for command in SHOWN["README.md"].commands} - run == set(FOR_BREVITY)


def test_the_readmes_commands_for_a_cluster_are_those_that_a_test_runs() -> None:
    """The start page's, whole and in its order: tests/e2e/test_pages.py runs them on a real node."""
    own, run = (
        [command.text for command in Page.read(path).commands if command.heading == "In a cluster"]
        for path in ("README.md", "docs/start.md")
    )
    assert own[:3] == run[:3]
    assert set(own[3:]) <= {
        command.text for page in SHOWN.values() if page.path != "README.md" for command in page.commands
    }


@pytest.mark.parametrize("path", [path for path in pages() if INSTALLATION.search((ROOT / path).read_text())])
def test_an_installation_names_the_registry_of_the_images(path: str) -> None:
    """On its line, or in the values that the page has it read: we publish no images under the chart's own names."""
    text = (ROOT / path).read_text()
    values = {step.name: step.text for step in Page.read(path).steps if isinstance(step, File)}
    for command in INSTALLATION.findall(text):
        read = re.search(r"--values (\S+)", command)
        given = values.get(read[1], "") if read else ""
        assert f"--set images.registry={REGISTRY}" in command or f"registry: {REGISTRY}" in given, command
    assert "operations/install.md#images" in text or "## Images" in text


@pytest.mark.parametrize("path", pages())
def test_a_package_is_installed_by_name_alone_only_where_the_page_notes_that_it_is_not_published(path: str) -> None:
    text = (ROOT / path).read_text()
    if re.search(r"pip install '?accelbench", text):
        assert "accelbench is not on PyPI yet" in " ".join(text.split())


def test_every_block_of_commands_has_a_dollar_sign() -> None:
    """What a block without it holds is run by somebody, or the table says that nobody does."""
    files = [path for path in ROOT.glob("**/*.md") if not {".venv", "node_modules", "build"} & set(path.parts)]
    names = {
        str(path.relative_to(ROOT))
        for path in files
        if re.search(r"^ *`{3,}(?:sh|bash)$", path.read_text(), re.MULTILINE)
    }
    assert {name for name in names if not name.startswith(NOT_PAGES)} == set(SHELL)


def test_a_page_is_parsed_as_a_reader_reads_it() -> None:
    steps = tuple(
        _steps("## Do it\n\n`a.txt`:\n```text\nx\n```\n```console\n$ cat a.txt \\\n  b  # both\nx ...\n```\n")
    )
    assert steps == (File("Do it", "a.txt", "x\n"), Command("Do it", "cat a.txt \\\n  b", "x ...\n"))


def _flat(command: str) -> str:
    """On one line."""
    return " ".join(command.replace("\\\n", " ").split())
