"""Bounds and workloads that changed after a result, results of older sources: what the ledger has to say of them."""

import shutil
from datetime import date
from pathlib import Path

import pytest

from accelbench.claims import ledger
from accelbench.claims.ledger import Claim
from accelbench.cli.claimed import ClaimRun, load, older, runs
from cli.command import ROOT, accelbench

RESULTS = ROOT / "docs" / "results" / "claims"
CLAIMS = {claim.row: claim for claim in ledger.load(ROOT / "examples" / "claims")}
MOVED = {6, 7, 9, 10, 20, 37}
"""Rows of which a reader of the history can see that bounds changed after a result."""


def run_of(claim: Claim, results: Path = RESULTS) -> ClaimRun:
    return next(iter(runs(claim, "cpu", results)))


def test_bounds_that_changed_after_a_result_are_explained_in_the_ledger() -> None:
    for claim in CLAIMS.values():
        for run in (*runs(claim, "cpu", RESULTS), *runs(claim, "gpu", RESULTS)):
            if run.directory.begun:
                assert load(claim, run) is not None, (claim.row, run.name)
    assert [row for row in MOVED if not CLAIMS[row].history] == []


def test_a_result_that_was_asked_other_bounds_settles_nothing_unless_the_history_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Row 24 has a history."""
    there = tmp_path / "cpu" / "24-retrace-traps"
    shutil.copytree(RESULTS / "cpu" / "24-retrace-traps", there)
    record = there / "run.json"
    record.write_text(record.read_text().replace('"atLeast": "2"', '"atLeast": "3"'))
    [last] = CLAIMS[24].history
    claim = CLAIMS[24].model_copy(update={"history": (last.model_copy(update={"changed": date.max}),)})
    kept = load(claim, run_of(claim, tmp_path))
    assert kept is not None
    assert kept.bounds_changed
    silent = claim.model_copy(update={"history": ()})
    assert load(silent, run_of(silent, tmp_path)) is None
    said = "row 24: the bounds of 24-retrace-traps changed after its result, and its history does not say why"
    assert said in capsys.readouterr().err
    early = claim.model_copy(update={"history": (last.model_copy(update={"changed": date.min}),)})
    assert load(early, run_of(early, tmp_path)) is None


def test_a_result_that_was_asked_the_same_bounds_is_held_to_nothing_else() -> None:
    claim = CLAIMS[17]
    found = load(claim, run_of(claim))
    assert found is not None
    assert not found.bounds_changed


def test_another_workload_is_another_question(tmp_path: Path) -> None:
    """A result of other parameters is not one of this claim."""
    claim = CLAIMS[17]
    there = tmp_path / "cpu" / "17-data-dependent-branch"
    shutil.copytree(RESULTS / "cpu" / "17-data-dependent-branch", there)
    assert load(claim, run_of(claim, tmp_path)) is not None
    record = there / "run.json"
    record.write_text(record.read_text().replace('"name": "data-dependent-branch"', '"name": "selu"'))
    assert load(claim, run_of(claim, tmp_path)) is None


def test_what_a_history_tells_of_is_kept() -> None:
    named = [earlier.result for claim in CLAIMS.values() for earlier in claim.history if earlier.result]
    assert named
    assert [each for each in named if not (RESULTS / each).is_file()] == []
    told = {path.name for path in (RESULTS / "earlier").iterdir()} - {"cpu", "targets"}
    assert told == {Path(each).parent.name for each in named}


def test_bounds_of_the_ledger_are_younger_than_a_result_only_where_they_are() -> None:
    """Those of row 6 stand in no manifest; its history ends on a day."""
    claim = CLAIMS[6]
    found = load(claim, run_of(claim))
    assert found is not None
    finished = {result.finished[:10] for result in found.results}
    last = claim.history[-1]
    for changed, younger in (("2000-01-01", False), (max(finished), True)):
        history = (last.model_copy(update={"changed": date.fromisoformat(changed)}),)
        held = load(claim.model_copy(update={"history": history}), run_of(claim))
        assert held is not None
        assert held.bounds_changed is younger, changed


def test_bounds_of_the_day_of_a_result_are_told_by_their_time() -> None:
    """Row 6 got its second example at 03:13, and it was measured after that; its first had been measured before."""
    claim = CLAIMS[6]
    found = {run.name: load(claim, run) for run in runs(claim, "cpu", RESULTS)}
    changed = {name: each.bounds_changed for name, each in found.items() if each}
    assert changed == {"52-gradient-descent": True, "06-a-loop-of-sines": False}


def test_every_measurement_that_was_replaced_is_shown_by_its_row() -> None:
    page = (ROOT / "docs" / "claims.md").read_text(encoding="utf-8")
    kept = [path.parent for where in ("cpu", "targets") for path in (RESULTS / "earlier" / where).glob("*/run.json")]
    assert kept
    assert [path.name for path in kept if f"{path.parent.name}/{path.name}/report.md" not in page] == []


def test_a_result_of_an_older_source_is_told_from_one_of_todays() -> None:
    claim = CLAIMS[17]
    found = load(claim, run_of(claim))
    assert found is not None
    [result] = found.results
    changed = result.model_copy(update={"fingerprint": {**result.fingerprint, "workloadSource": "0123456789abcdef"}})
    assert older(changed)


def test_an_older_result_is_marked_on_the_page_until_it_is_measured_again(tmp_path: Path) -> None:
    there = tmp_path / "cpu" / "17-data-dependent-branch"
    shutil.copytree(RESULTS / "cpu" / "17-data-dependent-branch", there)
    file = there / "all.result.json"
    mark = "older source of its workload (17-data-dependent-branch): to be measured again"
    source = '"workloadSource": "'
    text = file.read_text()
    before, _, after = text.partition(source)
    file.write_text(f"{before}{source}0123456789abcdef{after[after.index(chr(34)) :]}")
    report = accelbench("claims", "report", "--rows", "17", "--results", str(tmp_path), cwd=ROOT)
    assert mark in report.stdout
