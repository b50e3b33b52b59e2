"""Test the output and the files of `run` and `report`."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from accelbench.api.metadata import ObjectMeta
from accelbench.api.result import BenchmarkResult, Result
from accelbench.local.exits import Exit
from cli.command import MANIFEST, accelbench

SWEPT = MANIFEST.replace("size: 64, ", "") + "  sweep: [{name: size, values: [32, 64]}]\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("done")


@pytest.fixture(scope="module")
def done(directory: Path) -> subprocess.CompletedProcess[str]:
    (directory / "chain.yaml").write_text(MANIFEST)
    return accelbench("run", "chain.yaml", "--out", "out", cwd=directory, play="good", drawn=True)


def test_standard_output_has_the_report_and_standard_error_the_progress(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "574 µs" in done.stdout
    assert "round 1" not in done.stdout
    assert "round 1: jax/jit:" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr


def test_a_run_can_be_explained_without_a_manifest_that_says_so(tmp_path: Path) -> None:
    accelbench("run", "-", "--out", "out", "--explain", cwd=tmp_path, play="good", manifest=MANIFEST)
    record = json.loads((tmp_path / "out" / "run.json").read_text())
    assert record["run"]["spec"]["measurement"]["explain"] is True


def test_no_color_is_honoured_even_if_colour_is_forced(directory: Path, done: subprocess.CompletedProcess[str]) -> None:
    forced = accelbench("report", "out", cwd=directory, FORCE_COLOR="1")
    assert "\x1b[" in forced.stdout
    plain = accelbench("report", "out", cwd=directory, FORCE_COLOR="1", NO_COLOR="1")
    assert "\x1b" not in plain.stdout  # bold and dim neither: terminals draw them in other colours
    assert plain.stdout == done.stdout


def test_the_directory_holds_results_launches_log_record_and_report(
    directory: Path, done: subprocess.CompletedProcess[str]
) -> None:
    out = directory / "out"
    assert sorted(entry.name for entry in out.iterdir()) == [
        "all.launches.jsonl",
        "all.log",
        "all.result.json",
        "report.html",
        "report.md",
        "run.json",
    ]
    result = Result.model_validate_json((out / "all.result.json").read_text())
    assert result.case.parameters == {"size": 64, "length": 4}
    launches = [json.loads(line) for line in (out / "all.launches.jsonl").read_text().splitlines()]
    assert launches == [{"variant": "pytorch/eager", "round": 1}, {"variant": "jax/jit", "round": 1}]
    log = (out / "all.log").read_text()
    assert "framework prints" in log
    assert "standard error" in log
    assert (out / "report.md").read_text().startswith("# chain\n")
    record = json.loads((out / "run.json").read_text())
    assert record["exitCode"] == 0
    assert record["run"]["spec"]["workload"]["parameters"]["size"] == 64
    assert done.returncode == 0


def test_a_second_run_into_the_same_directory_is_refused_before_it_measures(
    directory: Path, done: subprocess.CompletedProcess[str]
) -> None:
    before = {entry.name: entry.read_bytes() for entry in (directory / "out").iterdir()}
    again = accelbench("run", "chain.yaml", "--out", "out", cwd=directory, play="good")
    assert again.returncode == Exit.USAGE
    assert "`accelbench report out`" in again.stderr
    assert {entry.name: entry.read_bytes() for entry in (directory / "out").iterdir()} == before
    assert done.returncode == 0


def test_two_runs_of_one_name_each_get_a_directory(tmp_path: Path) -> None:
    twice = f"{MANIFEST}---\n{MANIFEST}"
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=twice)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert sorted(path.parent.name for path in tmp_path.glob("out/*/run.json")) == ["chain", "chain-2"]


def test_without_the_option_out_results_go_to_a_directory_named_by_run_and_time(tmp_path: Path) -> None:
    done = accelbench("run", "-", cwd=tmp_path, play="good", manifest=MANIFEST)
    [directory] = (tmp_path / "results").iterdir()
    assert re.fullmatch(r"chain-\d{8}T\d{6}Z", directory.name)
    assert f"results: results/{directory.name}" in done.stderr


def test_overrides_reach_the_runner_and_the_record(tmp_path: Path) -> None:
    accelbench(
        "run", "-", "--out", "out", "--set", "workload.parameters.size=16", "--set", "measurement.rounds.max=4",
        cwd=tmp_path, play="good", manifest=MANIFEST,
    )  # fmt: skip
    result = Result.model_validate_json((tmp_path / "out" / "all.result.json").read_text())
    assert result.case.parameters["size"] == 16
    assert result.case.measurement.rounds_max == 4


def test_a_sweep_runs_every_case_and_reports_each(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=SWEPT)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert len(list((tmp_path / "out").glob("*.result.json"))) == 2
    assert "size 32" in done.stdout
    assert "size 64" in done.stdout


def test_a_script_gets_one_json_document_and_nothing_else_on_standard_output(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", "--output", "json", cwd=tmp_path, play="good", manifest=SWEPT)
    report = json.loads(done.stdout)
    assert report["format"] == "accelbench.dev/report/v1alpha1"
    assert report["run"]["exitCode"] == 0
    assert [case["result"]["case"]["parameters"]["size"] for case in report["cases"]] == [32, 64]
    assert report["cases"][0]["result"]["comparisons"][0]["verdict"] == "faster"


def test_report_shows_what_run_showed(directory: Path, done: subprocess.CompletedProcess[str]) -> None:
    again = accelbench("report", "out", cwd=directory)
    assert again.returncode == Exit.SUCCESS
    assert again.stdout == done.stdout
    single = accelbench("report", "out/all.result.json", cwd=directory)
    assert single.stdout == done.stdout


def test_report_writes_markdown_and_json_for_other_programs(
    directory: Path, done: subprocess.CompletedProcess[str]
) -> None:
    text = accelbench("report", "out", "--output", "markdown", cwd=directory)
    assert text.stdout == (directory / "out" / "report.md").read_text()
    document = json.loads(accelbench("report", "out", "--output", "json", cwd=directory).stdout)
    assert document["run"]["run"]["metadata"]["name"] == "chain"
    assert done.returncode == 0


def test_report_writes_the_page_that_run_left(directory: Path, done: subprocess.CompletedProcess[str]) -> None:
    again = accelbench("report", "out", "--output", "html", cwd=directory)
    assert again.returncode == Exit.SUCCESS, again.stderr
    assert again.stdout == (directory / "out" / "report.html").read_text()
    assert again.stdout.startswith("<!doctype html>")
    assert done.returncode == 0


def test_a_run_without_matplotlib_succeeds_and_names_the_extra_to_install(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=MANIFEST)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "accelbench[report]" in done.stderr
    assert not (tmp_path / "out" / "report.html").exists()
    refused = accelbench("report", "out", "--output", "html", cwd=tmp_path, play="good")
    assert refused.returncode == Exit.USAGE
    assert "accelbench[report]" in refused.stderr


@pytest.mark.parametrize("form", ["yaml", "json", "list"])
def test_report_reads_what_kubectl_prints(directory: Path, done: subprocess.CompletedProcess[str], form: str) -> None:
    result = Result.model_validate_json((directory / "out" / "all.result.json").read_text())
    metadata = ObjectMeta.model_validate({"name": "chain-1", "uid": "1", "managedFields": [{"manager": "operator"}]})
    stored = json.loads(BenchmarkResult.from_result(result, metadata).to_json())
    listed = {"apiVersion": "v1", "kind": "List", "items": [stored]} if form == "list" else stored
    text = json.dumps(listed) if form == "json" else yaml.safe_dump(listed, sort_keys=False)
    (directory / "stored").write_text(text)
    shown = accelbench("report", "stored", cwd=directory)
    assert shown.stdout == done.stdout


def test_a_file_that_is_no_result_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    refused = accelbench("report", "other.json", cwd=tmp_path)
    assert refused.returncode == Exit.INVALID_SPEC
    assert "other.json" in refused.stderr
    absent = accelbench("report", "absent.json", cwd=tmp_path)
    assert absent.returncode == Exit.USAGE


def test_two_manifests_in_a_file_are_run_one_after_the_other_each_in_its_own_directory(tmp_path: Path) -> None:
    both = MANIFEST + "---\n" + MANIFEST.replace("name: chain", "name: other")
    done = accelbench("run", "-", "--out", "out", "--output", "json", cwd=tmp_path, play="good", manifest=both)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert [json.loads(line)["run"]["run"]["metadata"]["name"] for line in done.stdout.splitlines()] == [
        "chain",
        "other",
    ]
    assert (tmp_path / "out" / "chain" / "run.json").exists()
    assert (tmp_path / "out" / "other" / "run.json").exists()


def test_a_directory_that_cannot_be_written_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=MANIFEST)
    assert done.returncode == Exit.USAGE
    assert "out: File exists" in done.stderr


def test_a_file_in_the_working_directory_is_not_taken_for_a_framework(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('shadowed')")
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=MANIFEST, PYTHONSAFEPATH="1")
    assert done.returncode == Exit.SUCCESS, done.stderr
