"""What a forge shows of a page, the site shows too: links across the repository, lists, code as it stands."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import pytest

from pages.page import ROOT

if TYPE_CHECKING:
    from types import ModuleType

PAGE = PurePosixPath("docs/concepts/parity.md")
CONFLICT = re.compile(r"^(<{7}|={7}$|>{7})", re.MULTILINE)
"""What git leaves around the two sides of a merge."""


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_build", ROOT / "docs" / "site" / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("link", "becomes", "leads_to"),
    [
        ("[v](verdict.md#the-rule)", "[v](verdict.md#the-rule)", "docs/concepts/verdict.md"),
        ("[r](../../README.md#words)", "[r](../source/README.md#words)", "README.md"),
        ("[e](../../examples/demo.sh)", "[e](../source/examples/demo.sh.md)", "examples/demo.sh"),
        ("![p](../images/verdict.svg)", "![p](../images/verdict.svg)", "docs/images/verdict.svg"),
    ],
)
def test_a_link_leads_to_the_same_file(site: ModuleType, link: str, becomes: str, leads_to: str) -> None:
    assert site.laid_out(PAGE, link, ROOT) == (f"{becomes}\n", {Path(leads_to)})


@pytest.mark.parametrize("text", ["[w](https://example.com/a)", "[h](#limits)", "```\n[x](none.yaml)\n- a\n```"])
def test_what_is_no_link_of_ours_stays_as_it_is(site: ModuleType, text: str) -> None:
    assert site.laid_out(PAGE, text, ROOT) == (f"{text}\n", set())


def test_a_list_may_follow_a_paragraph(site: ModuleType) -> None:
    text, _ = site.laid_out(PAGE, "Two:\n- one,\n  the first\n- other\n\n1. a\n2. b", ROOT)
    assert text == "Two:\n\n- one,\n  the first\n- other\n\n1. a\n2. b\n"


def test_a_file_is_shown_whole_whatever_it_quotes(site: ModuleType) -> None:
    assert site.quoted(Path("a.yaml"), "x: ```\n") == "# a.yaml\n\n````yaml\nx: ```\n````\n"


@pytest.mark.parametrize("pattern", ["*.md", "docs/**/*.md", "charts/**/*.md"])
def test_every_merge_was_finished(pattern: str) -> None:
    pages = list(ROOT.glob(pattern))
    marked = [str(page.relative_to(ROOT)) for page in pages if CONFLICT.search(page.read_text())]
    assert (bool(pages), marked) == (True, [])
