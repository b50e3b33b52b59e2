"""`docs/claims.md` says what the stored results say."""

from pathlib import Path

from cli.command import ROOT, accelbench

RESULTS = "docs/results/claims"


def test_the_page_is_what_the_stored_results_give() -> None:
    made = accelbench("claims", "report", "--results", RESULTS, cwd=ROOT)
    assert made.returncode == 0, made.stderr
    assert made.stdout == (ROOT / "docs" / "claims.md").read_text(encoding="utf-8"), (
        f"accelbench claims report --results {RESULTS} > docs/claims.md"
    )


def test_every_link_of_the_page_leads_somewhere() -> None:
    page = ROOT / "docs" / "claims.md"
    links = [part.partition(")")[0] for part in page.read_text(encoding="utf-8").split("](")[1:]]
    assert links
    assert [link for link in links if not link.startswith("#") and not Path(page.parent, link).exists()] == []
