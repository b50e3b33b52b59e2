"""The page of all claims, made from results of two rows."""

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from cli.command import ROOT, accelbench

RESULTS = ROOT / "tests" / "data" / "claims"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The main page and those next to it, by name."""
    directory = tmp_path_factory.mktemp("pages")
    asked = ("--rows", "2,4,17,24,42", "--results", str(RESULTS), "--pages", str(directory))
    made = accelbench("claims", "report", *asked, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    return {"claims.md": made.stdout, **{file.name: file.read_text() for file in directory.iterdir()}}


def row_17(page: str) -> str:
    """From the row's heading to the next one."""
    return page.partition("# Row 17\n")[2].partition("# Row ")[0]


def test_a_row_has_its_verdict_and_its_numbers(pages: Mapping[str, str]) -> None:
    row = row_17(pages["claims.md"])
    assert "**refuted.**" in row
    assert "TracerBoolConversionError" in row
    assert "cpu/17-data-dependent-branch/report.md)" in row_17(pages["results.md"])


def test_replaced_results_are_on_the_page_of_the_history(pages: Mapping[str, str]) -> None:
    row = row_17(pages["history.md"])
    assert re.search(r"`git show [0-9a-f]{7,40}:docs/results/claims/earlier/cpu/17-\S+/report\.md`", row)


def test_claims_to_be_measured_are_on_a_page_of_their_own(pages: Mapping[str, str]) -> None:
    assert re.search(r"\| 4 \|.*a100", pages["next.md"])
    assert "--rows 42  # 42-composed-derivatives" in pages["next.md"]
    assert "--rows 17" not in pages["next.md"]


def test_a_row_without_a_result_is_on_a_page_of_its_own(pages: Mapping[str, str]) -> None:
    assert "### Row 2\n" in pages["unmeasured.md"]
    assert "### Row 2\n" not in pages["claims.md"]
    assert "[2](claims/unmeasured.md#row-2)" in pages["claims.md"]
    assert "### Row 17\n" not in pages["unmeasured.md"]
    assert "[17](#row-17)" in pages["claims.md"]


def test_the_words_of_the_tables_are_explained(pages: Mapping[str, str]) -> None:
    explained = set(re.findall(r"\*\*(.+?)\*\*", pages["words.md"]))
    assert {"eager", "op-by-op", "jit", "certificate", "unknown (0.1 to 7.4)"} <= explained


def test_refuted_claims_are_on_the_first_screen(pages: Mapping[str, str]) -> None:
    first_screen, _, rest = pages["claims.md"].partition("## All of them")
    for text in (first_screen, rest):
        assert "A Python branch on data is an error under jit (TracerBoolConversionError)" in text


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
