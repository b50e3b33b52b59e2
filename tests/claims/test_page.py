"""The page of all claims, made from results of two rows."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from accelbench.claims.page import OUTDATED
from cli.command import ROOT, accelbench

RESULTS = ROOT / "tests" / "data" / "claims"


@pytest.fixture(scope="module")
def page() -> str:
    made = accelbench("claims", "report", "--rows", "4,17,24", "--results", str(RESULTS), cwd=ROOT)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_a_row_has_its_verdict_its_numbers_and_its_replaced_results(page: str) -> None:
    row = page[page.index("## Row 17") : page.index("## Row 24")]
    assert "**confirmed.**" in row or "**refuted.**" in row
    assert "TracerBoolConversionError" in row
    assert "cpu/17-data-dependent-branch/report.md)" in row
    assert re.search(r"`git show [0-9a-f]{7,40}:docs/results/claims/earlier/cpu/17-\S+/report\.md`", row)


def test_the_page_explains_the_words_that_it_uses(page: str) -> None:
    words = page[page.index("## Words") : page.index("## All of them")]
    assert {"eager", "op-by-op", "jit", "certificate"} <= set(re.findall(r"\*\*(.+?)\*\*", words))


def test_a_comment_on_older_numbers_says_so(page: str, tmp_path: Path) -> None:
    assert OUTDATED not in page
    shutil.copytree(RESULTS / "cpu", tmp_path / "cpu")
    file = tmp_path / "cpu" / "17-data-dependent-branch" / "all.result.json"
    file.write_text(re.sub(r'"finished":"20\d\d', '"finished":"2099', file.read_text()))
    made = accelbench("claims", "report", "--rows", "17", "--results", str(tmp_path), cwd=ROOT)
    assert OUTDATED in made.stdout


def test_a_picture_stands_alone_in_both_colour_schemes(tmp_path: Path) -> None:
    made = accelbench(
        "claims", "report", "--rows", "29,30", "--results", str(RESULTS), "--pictures", str(tmp_path), cwd=ROOT
    )
    assert made.returncode == 0, made.stderr
    files = sorted(tmp_path.iterdir())
    assert files
    for file in files:
        text = file.read_text()
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
        used = set(re.findall(r"var\((--[a-z0-9-]+)\)", text))
        defined = set(re.findall(r"(--[a-z0-9-]+):", text))
        assert used <= defined, file.name
        assert "prefers-color-scheme: dark" in text
        assert re.findall(r"(?:href|src)=\"(?!#)", text) == []
