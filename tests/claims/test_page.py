"""`docs/claims.md` says what the stored results say."""

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree as ET

from accelbench.claims.page import OUTDATED
from cli.command import ROOT, accelbench

RESULTS = "docs/results/claims"
PICTURES = ROOT / RESULTS / "pictures"


def test_the_page_and_its_pictures_are_what_the_stored_results_give(tmp_path: Path) -> None:
    asked = ("claims", "report", "--hardware", "cpu,gpu", "--results", RESULTS, "--pictures")
    made = accelbench(*asked, str(tmp_path), cwd=ROOT)
    assert made.returncode == 0, made.stderr
    again = f"accelbench {' '.join(asked)} {RESULTS}/pictures > docs/claims.md"
    assert made.stdout == (ROOT / "docs" / "claims.md").read_text(encoding="utf-8"), again
    drawn, kept = ({file.name: file.read_text() for file in there.iterdir()} for there in (tmp_path, PICTURES))
    assert drawn == kept, again


def test_no_comment_of_the_page_is_older_than_its_numbers() -> None:
    """Read the row again beside its new result, and then change `written` in the ledger."""
    assert OUTDATED not in (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")


def test_a_comment_on_older_numbers_says_so_and_keeps_its_words(tmp_path: Path) -> None:
    there = tmp_path / "cpu" / "17-data-dependent-branch"
    shutil.copytree(ROOT / RESULTS / "cpu" / there.name, there)
    arguments = ("claims", "report", "--rows", "17", "--results", str(tmp_path))
    assert OUTDATED not in accelbench(*arguments, cwd=ROOT).stdout
    file = there / "all.result.json"
    file.write_text(re.sub(r'"finished": "20\d\d', '"finished": "2099', file.read_text()))
    assert f"({OUTDATED}) No. Every call" in accelbench(*arguments, cwd=ROOT).stdout


def test_a_picture_is_a_file_of_its_own() -> None:
    """It brings its colours, for either scheme, and asks for nothing."""
    files = sorted(PICTURES.iterdir())
    assert files
    for file in files:
        text = file.read_text()
        assert ET.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314 - our own
        used = set(re.findall(r"var\((--[a-z0-9-]+)\)", text))
        defined = set(re.findall(r"(--[a-z0-9-]+):", text))
        assert used <= defined, file.name
        assert "prefers-color-scheme: dark" in text
        assert re.findall(r"(?:href|src)=\"(?!#)", text) == []


def test_every_link_of_the_page_leads_somewhere() -> None:
    page = ROOT / "docs" / "claims.md"
    links = [part.partition(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    assert links
    assert [
        link for link in links if not link.startswith(("#", "https:")) and not Path(page.parent, link).exists()
    ] == []


def test_warnings_of_reports_reach_the_page() -> None:
    """Intervals that may be too narrow, of the rows that rest on them."""
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    sections = dict(section.split("\n", 1) for section in text.split("\n## Row ")[1:])
    reports = {
        row: [line for line in section.split("\n") if "report.md" in line and line.startswith("Results with")]
        for row, section in sections.items()
    }
    for row, lines in reports.items():
        for link in [part.partition(")")[0] for line in lines for part in line.split("](")[1:]]:
            if link.endswith("report.md") and "too narrow" in (ROOT / "docs" / link).read_text(encoding="utf-8"):
                assert "too narrow" in sections[row], (row, link)


def test_the_page_says_no_long_ratio_and_no_percent_of_time() -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    assert "% more time" not in text
    assert "% less time" not in text.replace("31 % less time", "")


def test_the_page_explains_what_it_names() -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    words = text[text.index("## The articles") : text.index("## All of them")]
    for name in ("A0", "A3", "eager", "op-by-op", "jit", "firstCallRatio", "compileRatio", "programSize", "kernels"):
        assert f"**{name}**" in words, name
    assert "processors used" not in text[text.index("## Row 1") :]


def test_no_ratio_is_said_of_an_interval_that_has_1_inside() -> None:
    """`1.02 times as fast (0.66 to 1.60)` is no finding."""
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    found = re.findall(r"times as (?:fast|slow) \(([0-9.,]+) to ([0-9.,]+)\)", text)
    ends = [tuple(float(end.replace(",", "")) for end in each) for each in found]
    assert ends
    assert [each for each in ends if each[0] < 1 < each[1]] == []


def test_a_table_of_times_has_one_baseline() -> None:
    text = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    tables = [part for part in text.split("\n\n") if part.startswith("|") and " | beside " in part.partition("\n")[0]]
    assert tables
    for table in tables:
        named = re.search(r"\| beside (\S+) \|", table)
        assert named
        baselines = {line for line in table.split("\n") if "| baseline |" in line}
        assert all(f" {named[1]} |" in line for line in baselines), table
