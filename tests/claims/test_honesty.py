"""A bound that changed after a result needs a reason in the ledger; a result of older source is marked."""

import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from accelbench.claims import ledger
from accelbench.claims.ledger import Claim, Earlier
from accelbench.cli.claimed import ClaimRun, claim_runs, has_older_source, load_run
from cli.command import ROOT, accelbench

RESULTS = ROOT / "tests" / "data" / "claims"
CLAIMS = {claim.row: claim for claim in ledger.load(ROOT / "examples" / "claims")}
BRANCH, TRAPS = "17-data-dependent-branch", "24-retrace-traps"


def run_of(claim: Claim, results: Path = RESULTS) -> ClaimRun:
    return next(iter(claim_runs(claim, "cpu", results)))


def test_a_processor_measures_nothing_that_decides_a_claim_about_tpus(tmp_path: Path) -> None:
    on_processor = {run.name for run in claim_runs(CLAIMS[8], "cpu", tmp_path) if run.decides_claim}
    on_tpu = {run.name for run in claim_runs(CLAIMS[8], "tpu", tmp_path) if run.decides_claim}
    assert on_processor - on_tpu == {"08-fusion-of-sine-and-cosine"}
    assert on_tpu == {"08-fusion-of-sine-and-cosine-on-targets"}


def copied(name: str, to: Path, file: str, before: str, after: str) -> Path:
    """Copy a claim's results with one text in one file replaced."""
    directory = to / "cpu" / name
    shutil.copytree(RESULTS / "cpu" / name, directory)
    text = (directory / file).read_text()
    assert before in text
    (directory / file).write_text(text.replace(before, after))
    return to


def test_a_result_with_other_bounds_decides_nothing_unless_the_history_explains_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = copied(TRAPS, tmp_path, "run.json", '"atLeast":"2"', '"atLeast":"3"')
    [last] = CLAIMS[24].history

    def changed(*history: Earlier) -> Claim:
        return CLAIMS[24].model_copy(update={"history": history})

    explained = changed(last.model_copy(update={"changed": date.max}))
    kept = load_run(explained, run_of(explained, results))
    assert kept is not None
    assert kept.has_other_bounds
    assert load_run(changed(), run_of(changed(), results)) is None
    assert "row 24" in capsys.readouterr().err
    too_early = changed(last.model_copy(update={"changed": date.min}))
    assert load_run(too_early, run_of(too_early, results)) is None


def test_a_result_with_the_bounds_of_its_manifest_is_recognised() -> None:
    kept = load_run(CLAIMS[17], run_of(CLAIMS[17]))
    assert kept is not None
    assert not kept.has_other_bounds


def test_another_workload_is_another_claim(tmp_path: Path) -> None:
    results = copied(BRANCH, tmp_path, "run.json", '"name":"data-dependent-branch"', '"name":"selu"')
    assert load_run(CLAIMS[17], run_of(CLAIMS[17], results)) is None


@pytest.mark.parametrize(
    ("changed", "explains"),
    [
        (date(2026, 11, 24), False),
        (date(2026, 11, 25), True),
        (datetime(2026, 11, 25, 11, tzinfo=UTC), False),
        (datetime(2026, 11, 25, 13, tzinfo=UTC), True),
    ],
)
def test_a_change_explains_the_results_before_it(changed: date, explains: bool) -> None:
    earlier = Earlier(changed=changed, asked="a", verdict="confirmed", found="f", why="w")
    claim = CLAIMS[17].model_copy(update={"history": (earlier,)})
    assert claim.has_change_since(datetime(2026, 11, 25, 12, tzinfo=UTC)) is explains


def test_an_older_result_is_marked_on_the_page_until_it_is_measured_again(tmp_path: Path) -> None:
    kept = load_run(CLAIMS[17], run_of(CLAIMS[17]))
    assert kept is not None
    digest = kept.results[0].fingerprint["workloadSource"]
    results = copied(BRANCH, tmp_path, "all.result.json", digest, "0123456789abcdef")
    changed = load_run(CLAIMS[17], run_of(CLAIMS[17], results))
    assert changed is not None
    assert has_older_source(changed.results[0])
    asked = ("--rows", "17", "--results", str(results), "--pages", str(tmp_path / "pages"))
    assert accelbench("claims", "report", *asked, cwd=ROOT).returncode == 0
    page = (tmp_path / "pages" / "results.md").read_text()
    assert f"older source of its workload ({BRANCH}): to be measured again" in page
