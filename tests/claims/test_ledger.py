"""The ledger beside the manifests."""

from pathlib import Path

import pytest

from accelbench.claims.ledger import LEDGER, InvalidLedgerError, UnknownRowError, choose, directory, load

ROOT = Path(__file__).parents[2]
CLAIMS = load(ROOT / "examples" / "claims")


def test_every_manifest_is_in_the_ledger_under_its_row() -> None:
    manifests = sorted(path.name for path in (ROOT / "examples" / "claims").glob("[0-9]*.yaml"))
    assert [claim.manifest for claim in CLAIMS] == manifests
    assert all(int(claim.manifest.partition("-")[0]) == claim.row for claim in CLAIMS)


def test_an_installed_accelbench_has_the_same_claims() -> None:
    assert load(directory()) == CLAIMS
    assert {path.name for path in directory().glob("*.yaml")} == {*(claim.manifest for claim in CLAIMS), LEDGER}


def test_rows_are_chosen_by_number_and_range_in_the_order_given() -> None:
    assert [claim.row for claim in choose(CLAIMS, "33, 2,28-30")] == [33, 2, 28, 29, 30]
    assert choose(CLAIMS, "") == CLAIMS
    assert [claim.row for claim in choose(CLAIMS, "2,2")] == [2]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("1000", "no claim in row 1000; there are 1 to 4, 6 to 25"),
        ("two", "'two' is no row"),
        ("2-x", "'2-x' is no row"),
    ],
)
def test_a_row_that_is_none_is_refused_with_those_that_are(rows: str, said: str) -> None:
    with pytest.raises(UnknownRowError, match=said):
        choose(CLAIMS, rows)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- {row: 1}", "0.article: Field required"),
        ("- [", "ledger.yaml"),
        (None, "No such file"),
    ],
)
def test_a_ledger_that_is_none_is_refused_with_its_place(text: str | None, said: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / LEDGER).write_text(text)
    with pytest.raises(InvalidLedgerError, match=said):
        load(tmp_path)


def test_a_row_stands_once(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "claims" / LEDGER).read_text()
    entry = text[text.index("- row: 2\n") : text.index("- row: 3\n")]
    (tmp_path / LEDGER).write_text(entry + entry)
    with pytest.raises(InvalidLedgerError, match="row 2 is there twice"):
        load(tmp_path)
