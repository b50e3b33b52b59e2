"""Test `accelbench suite` with a fake runner, and its refusals without any."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from accelbench import __version__ as accelbench_version
from accelbench.cli import shipped_suites
from accelbench.cli.main import app
from accelbench.local.directory import RunDirectory, RunRecord
from accelbench.local.exits import Exit
from accelbench.local.suites.definition import PlannedRun, parse_suite, plan, read_suite
from accelbench.local.suites.directory import reusable_results
from accelbench.plan.cases import count_cases
from cli.command import MANIFEST, accelbench, started
from cluster.wait import HANG_SECONDS, wait_until
from report import sample, suite_sample

SUITE = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkSuite
metadata: {name: demo}
spec:
  description: A manifest and a workload.
  runs:
    - {file: chain.yaml}
    - {workload: mlp, set: [hidden=8, measurement.timeLimitSeconds=60]}
"""


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a directory with a suite and its manifest."""
    (tmp_path / "chain.yaml").write_text(MANIFEST)
    (tmp_path / "suite.yaml").write_text(SUITE)
    return tmp_path


@pytest.mark.slow
def test_a_suite_is_measured_reported_and_resumed(directory: Path) -> None:
    done = accelbench("suite", "run", "suite.yaml", cwd=directory, play="good", drawn=True)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "1 of 2: chain; at most 2 min 00 s left" in done.stderr
    assert "2 of 2: mlp; about 1 min 00 s left" in done.stderr
    assert "2 comparisons in 2 cases: 2 faster." in done.stdout
    assert "2.04x of these 2 cases" in done.stdout
    results = directory / "results/suites/demo"
    assert "2.04x of these 2 cases" in (results / "suite.html").read_text()
    assert '<a href="chain/report.html">' in (results / "suite.html").read_text()
    assert "A manifest and a workload." in (results / "suite.md").read_text()
    before = (results / "chain/all.result.json").stat().st_mtime_ns

    # Nothing is left to measure: a runner that crashes is not started.
    again = accelbench("suite", "run", "suite.yaml", cwd=directory, play="crash")
    assert (again.returncode, again.stderr.count("already measured")) == (Exit.SUCCESS, 2)
    assert (results / "chain/all.result.json").stat().st_mtime_ns == before

    # Another question of one run: its result does not count, the other's does.
    (directory / "suite.yaml").write_text(SUITE.replace("hidden=8", "hidden=16"))
    changed = accelbench("suite", "run", "suite.yaml", cwd=directory, play="crash")
    assert changed.stderr.count("already measured") == 1
    assert "1 not measured" in changed.stdout
    assert "none: mlp (not measured)" in changed.stdout
    assert changed.returncode == Exit.INTERNAL

    # Another version of accelbench.
    record = results / "chain/run.json"
    record.write_text(record.read_text().replace('"accelbench": "', '"accelbench": "older-'))
    older = accelbench("suite", "run", "suite.yaml", "-o", "json", cwd=directory, play="good")
    assert "already measured" not in older.stderr
    assert [entry["outcome"] for entry in json.loads(older.stdout)["comparisons"]] == ["faster", "faster"]


@pytest.mark.slow
def test_ctrl_c_keeps_the_complete_runs(directory: Path) -> None:
    first = accelbench("suite", "run", "suite.yaml", cwd=directory, play="good")
    assert first.returncode == Exit.SUCCESS, first.stderr
    kept = directory / "results/suites/demo/chain/all.result.json"
    (directory / "suite.yaml").write_text(SUITE.replace("hidden=8", "hidden=16"))
    before = kept.read_bytes()
    log = directory / "results/suites/demo/mlp/all.log"
    with started("suite", "run", "suite.yaml", cwd=directory, play="patient") as process:
        wait_until(lambda: log.exists() and "child " in log.read_text(), what="the runner to start", every_seconds=0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=HANG_SECONDS)
    assert process.returncode == Exit.INTERRUPTED, err
    assert kept.read_bytes() == before
    assert "1 faster, 1 not measured" in out
    assert "the same command continues" in err


def run_in_process(directory: Path, text: str) -> Result:
    """Run a suite that is refused, so that no runner starts."""
    path = directory / "suite.yaml"
    path.write_text(text)
    return CliRunner().invoke(app, ["suite", "run", str(path), "--results", str(directory / "results")])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("chain.yaml", "chian.yaml", "spec.runs[0]: chian.yaml: cannot read"),
        ("workload: mlp", "workload: mlpp", "spec.runs[1]: mlpp: no such workload; did you mean mlp?"),
        ("hidden=8", "hiden=8", 'spec.runs[1]: mlp: unknown parameter "hiden"; did you mean hidden?'),
        ("file: chain.yaml", "fil: chain.yaml", "line 7: spec.runs[0].fil: unknown field"),
        ("{file: chain.yaml}", "{file: chain.yaml, workload: mlp}", "spec.runs[0]: give either file"),
        ("BenchmarkSuite", "BenchmarkRun", "line 2: kind: a BenchmarkRun is measured by accelbench run"),
        ("BenchmarkSuite", "Suite", "line 2: kind: must be BenchmarkSuite"),
        ("{workload: mlp,", "{file: chain.yaml} #", 'several runs are named "chain"'),
        ("kind:", "kind: [", "malformed YAML"),
    ],
)
def test_a_mistake_in_a_suite_is_named_with_its_field_before_anything_is_measured(
    directory: Path, old: str, new: str, message: str
) -> None:
    done = run_in_process(directory, SUITE.replace(old, new))
    assert done.exit_code == Exit.INVALID_SPEC, done.output
    assert message in done.stderr
    assert not (directory / "results").exists()


def test_a_mistake_in_a_manifest_is_named_with_its_file_and_field(directory: Path) -> None:
    (directory / "chain.yaml").write_text(MANIFEST.replace("jax/jit", "jax/jt"))
    done = run_in_process(directory, SUITE)
    assert done.exit_code == Exit.INVALID_SPEC
    assert "chain.yaml" in done.stderr
    assert 'spec.variants[1].use: jax/jt: unknown mode "jt"; did you mean jit?' in done.stderr


def test_all_mistakes_of_a_suite_are_named_at_once(directory: Path) -> None:
    done = run_in_process(directory, SUITE.replace("hidden", "hiden").replace("chain.yaml", "chian.yaml"))
    assert "spec.runs[0]" in done.stderr
    assert "spec.runs[1]" in done.stderr


def test_a_name_that_no_suite_has_gets_a_suggestion(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["suite", "run", "smok", "--results", str(tmp_path)])
    assert done.exit_code == Exit.USAGE
    assert "did you mean smoke?" in done.stderr


def test_a_directory_without_a_suite_has_no_report(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["suite", "report", str(tmp_path)])
    assert (done.exit_code, "accelbench suite run" in done.stderr) == (Exit.INVALID_SPEC, True)


def test_name_and_overrides_of_an_entry_win_over_those_of_the_suite(directory: Path) -> None:
    path = directory / "suite.yaml"
    path.write_text(
        SUITE.replace("  runs:", "  set: [measurement.rounds.max=9, measurement.rounds.min=3]\n  runs:").replace(
            "{file: chain.yaml}", "{file: chain.yaml, name: short, set: [measurement.rounds.max=4]}"
        )
    )
    short, mlp = plan(read_suite(str(path)), str(path))
    assert (short.name, short.run.spec.measurement.rounds.max) == ("short", 4)
    assert (mlp.name, mlp.run.spec.measurement.rounds.max) == ("mlp", 9)
    [only, _] = plan(read_suite(str(path)), str(path), ["measurement.rounds.max=5"])
    assert only.run.spec.measurement.rounds.max == 5


def test_a_missing_file_is_not_taken_for_the_workload_of_its_name(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    Path("suite.yaml").write_text(SUITE.replace("chain.yaml", "matmul-chain"))
    done = CliRunner().invoke(app, ["suite", "run", "suite.yaml"])
    assert (done.exit_code, "spec.runs[0]: matmul-chain: cannot read" in done.stderr) == (Exit.INVALID_SPEC, True)


@pytest.fixture
def measured(directory: Path) -> tuple[PlannedRun, RunDirectory]:
    """Return a planned run of `chain.yaml` and a directory with its result."""
    planned = plan(parse_suite(SUITE, "suite.yaml"), str(directory / "suite.yaml"))[0]
    run_directory = RunDirectory(directory / "chain")
    record = RunRecord(accelbench=accelbench_version, started="2026-11-21T09:00:00Z", cases=("all",), run=planned.run)
    run_directory.prepare(record)
    run_directory.write_result(sample.result(), ())
    return planned, run_directory


def test_a_result_of_an_older_source_of_the_workload_is_not_reused(
    measured: tuple[PlannedRun, RunDirectory],
) -> None:
    planned, run_directory = measured
    assert set(reusable_results(run_directory, planned, (), pytest.fail)) == {"all"}
    older = sample.result(fingerprint={**sample.FINGERPRINT, "workloadSource": "0123456789abcdef"})
    run_directory.write_result(older, ())
    assert reusable_results(run_directory, planned, (), pytest.fail) == {}


def test_a_result_of_an_edited_script_is_not_reused(directory: Path, measured: tuple[PlannedRun, RunDirectory]) -> None:
    planned, run_directory = measured
    script = directory / "step.py"
    script.write_text("x = 1")
    with_script = replace(planned, script=script)
    assert reusable_results(run_directory, with_script, (), pytest.fail) == {}
    run_directory.copy_script(script)
    assert set(reusable_results(run_directory, with_script, (), pytest.fail)) == {"all"}
    script.write_text("x = 2")
    assert reusable_results(run_directory, with_script, (), pytest.fail) == {}


def test_a_result_of_other_packages_in_an_environment_is_not_reused(
    measured: tuple[PlannedRun, RunDirectory],
) -> None:
    planned, run_directory = measured
    locked = suite_sample.environment("jax-0.9.2")
    case = sample.case().model_copy(update={"environments": (locked,)})
    run_directory.write_result(sample.result(case=case), ())
    assert set(reusable_results(run_directory, planned, (locked,), pytest.fail)) == {"all"}
    newer = suite_sample.environment("jax-0.9.2", scipy="1.18.0")
    assert reusable_results(run_directory, planned, (newer,), pytest.fail) == {}


def test_an_incomplete_and_an_unreadable_result_are_not_reused(measured: tuple[PlannedRun, RunDirectory]) -> None:
    planned, run_directory = measured
    run_directory.write_result(sample.result(complete=False, stopped="Interrupted"), ())
    assert reusable_results(run_directory, planned, (), pytest.fail) == {}
    (run_directory.path / "run.json").write_text("{")
    lines: list[str] = []
    assert reusable_results(run_directory, planned, (), lines.append) == {}
    assert "run.json" in lines[0]


def test_smoke_ends_within_ten_minutes_by_its_time_limits() -> None:
    suite, source = shipped_suites.find("smoke")
    runs = [planned.run for planned in plan(suite, source)]
    assert sum(count_cases(run) * run.spec.measurement.time_limit_seconds for run in runs) <= 600
    pairs = {tuple(variant.label for variant in run.spec.variants) for run in runs}
    assert len(pairs) == 1  # so that there is a mean


def test_the_suite_articles_has_every_claim_that_a_processor_can_measure() -> None:
    suite, source = shipped_suites.find("articles")
    names = [planned.name for planned in plan(suite, source)]
    assert "33-xor-with-jit-around-the-step" in names
    assert "06-a-loop-of-sines" in names
    assert "25-cifar-cnn-training-step-in-tf32" not in names
    assert not [name for name in names if name.endswith("-on-targets")]


def test_the_shipped_suites_are_listed_with_their_time() -> None:
    listed = json.loads(CliRunner().invoke(app, ["suite", "list", "-o", "json"]).stdout)
    assert [entry["name"] for entry in listed] == ["smoke", "articles"]
    assert listed[0]["limitSeconds"] <= 600
