"""Answers in words say what the tables say, and the page is short enough to be read."""

import re
from functools import cache

import pytest

from accelbench.claims import answers, history_page, ledger, page, results_page
from accelbench.claims.prose import unsupported_figures
from accelbench.claims.settle import SettledClaim
from accelbench.cli import claimed
from cli.command import ROOT

CLAIMS = ledger.load(ROOT / "examples" / "claims")
MAXIMUM_WORDS = 9000


@cache
def settled(row: int) -> SettledClaim:
    [claim] = ledger.choose(CLAIMS, str(row))
    return claimed.settle_claim(claim, ["cpu", "gpu"], ROOT / "docs" / "results" / "claims")


@pytest.mark.parametrize("row", [claim.row for claim in CLAIMS])
def test_each_row_has_an_answer_written_for_its_present_results_and_verdict(row: int) -> None:
    found = settled(row)
    assert found.claim.answers.get(found.verdict), f"row {row} has no answer for {found.verdict}"
    results = found.results_digest
    assert found.claim.written_for == results, (
        f"row {row}: read its answer beside its results, then writtenFor: {results}"
    )


@pytest.mark.parametrize("row", [claim.row for claim in CLAIMS])
def test_every_figure_of_an_answer_is_in_its_tables(row: int) -> None:
    found = settled(row)
    tables = results_page.page([found], "results")
    trainings = page.trainings_table([found]) if found.claim.trainings else ""
    supporting_text = f"{found.claim.asks} {found.claim.quote} {tables} {trainings}"
    assert unsupported_figures(found.answer, supporting_text) == ()


@pytest.mark.parametrize(
    ("answer", "unsupported"),
    [
        ("It took 1.5 times as long (1.4 to 1.6), 30 ms against 20 ms.", ()),
        ("It took about 1 s.", ("1",)),
        ("It took 31 ms.", ("31",)),
        ("It took 30 MB.", ("30",)),
        ("It was twice as fast, by half a second.", ("twice", "half")),
        ("See row 31, in version 0.10.2 of 2026-11-27.", ()),
    ],
)
def test_a_figure_that_no_table_has_is_detected(answer: str, unsupported: tuple[str, ...]) -> None:
    assert unsupported_figures(answer, "1.50 times as slow (1.44 to 1.56), 30.1 ms, 20.0 ms") == unsupported


def test_the_page_has_at_most_nine_thousand_words() -> None:
    text = (ROOT / "docs" / "claims.md").read_text()
    words = [word for word in text.split() if re.search(r"\w", word)]
    assert len(words) <= MAXIMUM_WORDS


def test_every_row_of_the_page_has_versions_dates_and_the_age_of_its_bounds() -> None:
    for row in (11, 17, 33):
        rests_on = answers.basis(settled(row))
        assert re.search(r"(JAX|PyTorch) \d+\.\d+.*20\d\d-\d\d-\d\d.*bounds written .*\([0-9a-f]{8}\)", rests_on), row


def test_a_verdict_by_compiled_programs_alone_is_marked() -> None:
    assert answers.is_by_program(settled(4))
    assert not answers.is_by_program(settled(8))
    assert not answers.is_by_program(settled(38))  # its program is known, and its verdict is still to come
    assert "by program for h100 and v5e-16" in answers.basis(settled(8))


def test_the_history_names_the_commit_that_first_wrote_the_bounds() -> None:
    text = history_page.page([settled(17)])
    assert re.search(r"\| 17 \| [0-9a-f]{8} \| 2026-11-21 20:10 \| before any result \|", text)
