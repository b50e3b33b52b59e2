"""The ledger and the manifests."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml

from accelbench.api.run import BenchmarkRun
from accelbench.claims import articles, bounds
from accelbench.claims.ledger import (
    LEDGER,
    REWORDED,
    InvalidLedgerError,
    UnknownRowError,
    choose,
    directory,
    load,
)
from accelbench.claims.settle import hardware_of_target
from accelbench.local.manifests import read

ROOT = Path(__file__).parents[2]
CLAIMS = load(ROOT / "examples" / "claims")
RANGE = re.compile(r"\d[\u00d7x]?\s*(?:-|to)\s*\d+(?:\.\d+)?\s*[x\u00d7]")
"""`2-3x`, `1.3x to 2x`."""
EXPECTED = [{"metric": "speedup", "variant": "jax/jit", "atLeast": "2"}]
TRAINING = {"variant": "jax/jit", "over": "jax/op-by-op", "units": 10, "article": "2", "claims": "figure"}
MANIFESTS = {manifest for claim in CLAIMS for manifest in (*claim.manifests, *claim.beside)}


def test_every_manifest_is_in_the_ledger_under_its_row() -> None:
    assert {path.name for path in (ROOT / "examples" / "claims").glob("[0-9]*.yaml")} == MANIFESTS
    named = {claim.row: {*claim.manifests, *claim.beside} for claim in CLAIMS}
    rows = {manifest: int(manifest.partition("-")[0]) for manifest in MANIFESTS}
    assert {manifest for manifest, row in rows.items() if manifest not in named[row]} == set()


def test_an_installed_accelbench_has_the_same_claims() -> None:
    assert load(directory()) == CLAIMS
    assert {path.name for path in directory().glob("*.yaml")} == {
        *MANIFESTS,
        LEDGER,
        REWORDED,
        articles.ARTICLES,
        bounds.BOUNDS,
    }


def test_rows_are_chosen_by_number_and_range_in_the_order_given() -> None:
    assert [claim.row for claim in choose(CLAIMS, "33, 2,28-30")] == [33, 2, 28, 29, 30]
    assert choose(CLAIMS, "") == CLAIMS
    assert [claim.row for claim in choose(CLAIMS, "2,2")] == [2]


@pytest.mark.parametrize(
    ("rows", "expected_text"),
    [
        ("1000", "no claim in row 1000; rows are 1 to 70, 77 to 87"),
        ("two", "'two' is neither a row"),
        ("2-x", "'2-x' is neither a row"),
        ("1-", "'1-' is neither a row nor a range of rows, such as 28 or 28-37"),
        ("-3", "'-3' is neither a row"),
    ],
)
def test_an_unknown_row_is_refused_with_the_known_ones(rows: str, expected_text: str) -> None:
    with pytest.raises(UnknownRowError, match=expected_text):
        choose(CLAIMS, rows)


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("- {row: 1}", "0.article: Field required"),
        ("- [", "ledger.yaml"),
        (None, "No such file"),
    ],
)
def test_an_invalid_ledger_is_refused_with_the_place(text: str | None, expected_text: str, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / LEDGER).write_text(text)
    with pytest.raises(InvalidLedgerError, match=expected_text):
        load(tmp_path)


@pytest.mark.parametrize(
    ("majority", "expected_text"),
    [
        ("{variant: jax/jit, over: jax/jit, atLeast: '1'}", "variant and over must differ"),
        ("{variant: jax/jit, over: pytorch/eager}", "give atLeast, atMost or both"),
        ("{variant: jax/jit, over: pytorch/eager, least: '1'}", "majorities"),
    ],
)
def test_an_invalid_majority_is_refused(majority: str, expected_text: str, tmp_path: Path) -> None:
    entry = {"row": 1, "article": "A0", "quote": "w", "asks": "a?", "hardware": ["cpu"], "manifests": ["1.yaml"]}
    entry |= {"majorities": [yaml.safe_load(majority)]}
    (tmp_path / LEDGER).write_text(yaml.safe_dump([entry]))
    with pytest.raises(InvalidLedgerError, match=expected_text):
        load(tmp_path)


def test_a_claim_that_no_hardware_can_decide_is_refused(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "claims" / LEDGER).read_text()
    (tmp_path / LEDGER).write_text(text.replace("hardware: [gpu]", "hardware: []", 1))
    with pytest.raises(InvalidLedgerError, match=r"ledger\.yaml: 0\.hardware: Tuple should have at least 1 item"):
        load(tmp_path)


def test_a_ledger_that_is_not_text_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_bytes(b"- row: 1\n  quote: \xff\n")
    with pytest.raises(InvalidLedgerError, match=r"ledger\.yaml is not UTF-8 text"):
        load(tmp_path)


def test_a_row_occurs_once(tmp_path: Path) -> None:
    text = (ROOT / "examples" / "claims" / LEDGER).read_text()
    entry = text[text.index("- row: 2\n") : text.index("- row: 3\n")]
    (tmp_path / LEDGER).write_text(entry + entry)
    with pytest.raises(InvalidLedgerError, match="row 2 is there twice"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("changes", "expected_text"),
    [
        ({"manifests": []}, "give a manifest that tests it, or toMeasure"),
        ({"kind": "question", "expectations": EXPECTED}, "nothing reads its bounds"),
        ({"kind": "opinion", "expectations": EXPECTED}, "nothing reads its bounds"),
        ({"manifests": [], "toMeasure": "m", "expectations": EXPECTED}, "nothing reads its bounds"),
        ({"expectations": EXPECTED}, "need a history entry with their date"),
        ({"trainings": [TRAINING]}, "need a history entry with their date"),
        ({"trainings": [TRAINING | {"claims": "much"}]}, "figure"),
    ],
)
def test_a_ledger_that_breaks_a_rule_of_honesty_is_refused(
    changes: dict[str, object], expected_text: str, tmp_path: Path
) -> None:
    entry: dict[str, object] = {"row": 1, "article": "A0", "quote": "w", "asks": "a?", "hardware": ["cpu"]}
    entry |= {"manifests": ["1.yaml"], **changes}
    (tmp_path / LEDGER).write_text(yaml.safe_dump([entry]))
    with pytest.raises(InvalidLedgerError, match=expected_text):
        load(tmp_path)


def test_seconds_of_a_machine_are_claimed_of_that_machine() -> None:
    """A bound on an absolute time names its machine."""
    for claim in CLAIMS:
        runs = map(asked, claim.manifests)
        timed = any(each.metric in {"seconds", "compileSeconds"} for run in runs for each in run.spec.expectations)
        if timed and not claim.ignores_manifest_expectations:
            assert claim.machine, claim.row


def test_a_range_that_is_claimed_has_two_ends() -> None:
    claimed = [claim for claim in CLAIMS if RANGE.search(claim.quote) and claim.is_decidable]
    assert claimed
    for claim in filter(lambda each: each.manifests, claimed):
        assert claim.majorities, claim.row
        assert all(each.at_least and each.at_most for each in claim.majorities), claim.row


@cache
def asked(name: str) -> BenchmarkRun:
    [run] = read(str(ROOT / "examples" / "claims" / name), [])
    return run


def test_a_claim_is_decided_by_one_setting() -> None:
    """A workload in two precisions is two questions, and the article asked one."""
    for claim in CLAIMS:
        settings: dict[str, set[str | None]] = {}
        for run in map(asked, claim.manifests):
            settings.setdefault(run.spec.workload.name, set()).add(run.spec.measurement.precision)
        assert all(len(precisions) == 1 for precisions in settings.values()), claim.row


def test_every_bound_of_a_manifest_is_read_by_a_row() -> None:
    deciding = [claim for claim in CLAIMS if not claim.ignores_manifest_expectations]
    for name in sorted(MANIFESTS):
        for expectation in asked(name).spec.expectations:
            readers = [
                claim.row
                for claim in deciding
                if name in claim.manifests
                and (expectation.target is None or hardware_of_target(expectation.target) in claim.hardware)
            ]
            assert readers, f"{name}: no row reads {expectation.subject} of {expectation.variant}"


def test_every_topic_of_the_page_has_rows_and_every_row_a_topic() -> None:
    rows = [row for topic in articles.load(ROOT / "examples" / "claims").topics for row in topic.rows]
    assert sorted(rows) == [claim.row for claim in CLAIMS]
