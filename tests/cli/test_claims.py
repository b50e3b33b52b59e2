"""Test `accelbench claims` with a fake runner."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from accelbench.claims import ledger
from accelbench.cli.main import app
from accelbench.local.exits import Exit
from cli.command import accelbench

pytestmark = pytest.mark.slow


def cases_begun(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the cases that a command has started, such as `2 of 2`."""
    return re.findall(r"case (\d+ of \d+)", done.stderr)


def test_the_list_has_every_claim_with_its_verdict(tmp_path: Path) -> None:
    done = accelbench("claims", "list", "--output", "json", cwd=tmp_path)
    assert done.returncode == Exit.SUCCESS, done.stderr
    listed = {each["row"]: each for each in json.loads(done.stdout)}
    assert listed[33]["verdict"] == "not-measured-yet"
    assert "45%" in listed[33]["quote"]
    assert listed[33]["asks"].endswith("?")
    assert listed[33]["hardware"] == ["cpu"]


def test_the_list_names_the_results_behind_its_verdicts(tmp_path: Path) -> None:
    done = accelbench("claims", "list", "--rows", "33", cwd=tmp_path)
    assert done.stdout.splitlines()[0].split() == ["row", "article", "what", "is", "asked", "verdict", "here"]
    assert "not-measured-yet" in done.stdout
    assert "results/claims" in done.stderr


def test_a_claim_is_measured_decided_stored_and_not_measured_again(tmp_path: Path) -> None:
    first = accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    assert first.returncode == Exit.SUCCESS, first.stderr
    assert "row 33: refuted" in first.stdout
    question, answer, rests_on = first.stdout.splitlines()[1:]
    assert question.strip() == "With jit around the whole step, is the XOR training almost 45 % faster than in PyTorch?"
    assert answer.strip().startswith("No. jax/jit-step over 10,000")
    assert "(1.98 to 2.04)" in answer
    assert re.search(r"JAX \d.*20\d\d-\d\d-\d\d", rests_on)
    assert "results/claims/cpu/33-xor-with-jit-around-the-step\n" in first.stderr
    assert (tmp_path / "results/claims/cpu/33-xor-with-jit-around-the-step/all.result.json").exists()
    again = accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="crash")
    assert again.returncode == Exit.SUCCESS, again.stderr
    assert again.stdout.startswith("row 33: refuted")
    assert cases_begun(again) == []


def test_a_run_that_gave_no_result_is_run_again(tmp_path: Path) -> None:
    crashed = accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="crash")
    assert (crashed.returncode, "row 33: measured-not-decided" in crashed.stdout) == (Exit.INTERNAL, True)
    assert "row 33: refuted" in accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good").stdout


def test_a_stopped_run_continues_with_the_cases_that_it_had_not_reached(tmp_path: Path) -> None:
    directory = tmp_path / "results/claims/cpu/07-jit-of-tiny-calculations"
    asked = ("--rows", "7", "--beside")
    accelbench("claims", "run", *asked, cwd=tmp_path, play="good")
    first, second = sorted(directory.glob("*.result.json"))
    before = first.read_bytes()
    second.unlink()
    done = accelbench("claims", "run", *asked, cwd=tmp_path, play="good")
    assert cases_begun(done) == ["2 of 2"]
    assert first.read_bytes() == before
    assert first.with_name(first.name.replace(".result.json", ".log")).exists()
    assert second.exists()
    assert "1 of 2" in cases_begun(accelbench("claims", "run", *asked, "--again", cwd=tmp_path, play="good"))


def test_claims_about_other_hardware_are_named_and_skipped(tmp_path: Path) -> None:
    done = accelbench("claims", "run", "--rows", "33", "--hardware", "tpu", cwd=tmp_path, play="crash")
    assert done.returncode == Exit.SUCCESS
    assert "row 33: untestable" in done.stderr


def test_the_report_is_a_page_with_the_verdict_and_its_numbers(tmp_path: Path) -> None:
    accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    done = accelbench("claims", "report", "--rows", "2,33", "--pages", "pages", cwd=tmp_path)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "| 1 | refuted |" in done.stdout
    assert "**refuted.**" in done.stdout
    assert "(1.98-2.04)" in done.stdout
    results = (tmp_path / "pages" / "results.md").read_text()
    assert "(../results/claims/cpu/33-xor-with-jit-around-the-step/report.md)" in results


def test_an_unknown_row_or_hardware_is_refused_by_name(tmp_path: Path) -> None:
    rows = accelbench("claims", "run", "--rows", "1000", cwd=tmp_path)
    assert (rows.returncode, "row 1000" in rows.stderr) == (Exit.USAGE, True)
    hardware = accelbench("claims", "list", "--hardware", "abacus", cwd=tmp_path)
    assert (hardware.returncode, "gpu, gpus, tpu" in hardware.stderr) == (Exit.USAGE, True)


def test_a_claim_about_seconds_of_an_unnamed_machine_cannot_be_decided(tmp_path: Path) -> None:
    done = accelbench("claims", "run", "--rows", "19", cwd=tmp_path, play="crash")
    assert cases_begun(done) == []
    listed = json.loads(accelbench("claims", "list", "--rows", "19", "--output", "json", cwd=tmp_path).stdout)
    assert [each["verdict"] for each in listed] == ["untestable-anywhere"]


def test_a_page_without_its_articles_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "claims"
    shutil.copytree(ledger.directory(), directory)
    (directory / "articles.yaml").unlink()
    monkeypatch.setattr(ledger, "directory", lambda: directory)
    done = CliRunner().invoke(app, ["claims", "report", "--rows", "33", "--results", str(tmp_path)])
    assert (done.exit_code, "articles.yaml" in done.stderr) == (Exit.INTERNAL, True), done.stderr


def test_a_result_with_other_bounds_gives_no_verdict(tmp_path: Path) -> None:
    """Change the bounds of row 35, whose history does not explain that."""
    accelbench("claims", "run", "--rows", "35", cwd=tmp_path, play="good")
    record = tmp_path / "results/claims/cpu/35-jit-as-high-as-you-can/run.json"
    record.write_text(record.read_text().replace('"atMost": "1"', '"atMost": "0.9"'))
    done = accelbench("claims", "list", "--rows", "35", "--output", "json", cwd=tmp_path)
    assert [each["verdict"] for each in json.loads(done.stdout)] == ["not-measured-yet"]
    assert "35-jit-as-high-as-you-can" in done.stderr


def test_a_result_may_have_had_less_time_than_the_manifest_allows_but_no_smaller_minimum(tmp_path: Path) -> None:
    accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    path = tmp_path / "results/claims/cpu/33-xor-with-jit-around-the-step/run.json"
    record = json.loads(path.read_text())
    measurement = record["run"]["spec"]["measurement"]
    measurement["timeLimitSeconds"] -= 1
    measurement["rounds"]["max"] -= 1
    listing = ["claims", "list", "--rows", "33", "--output", "json", "--results", str(tmp_path / "results/claims")]
    for minimum, verdict in ((0, "refuted"), (1, "not-measured-yet")):
        measurement["rounds"]["min"] -= minimum
        path.write_text(json.dumps(record))
        assert json.loads(CliRunner().invoke(app, listing).stdout)[0]["verdict"] == verdict


def test_a_claim_about_other_hardware_can_be_measured_here_and_is_shown_without_deciding(tmp_path: Path) -> None:
    alone = accelbench("claims", "run", "--rows", "3", cwd=tmp_path, play="crash")
    assert "RTX 3090" in alone.stderr
    done = accelbench("claims", "run", "--rows", "3", "--beside", cwd=tmp_path, play="good")
    assert done.stdout.startswith("row 3: untestable-here\n")
    accelbench("claims", "report", "--rows", "3", "--pages", "pages", cwd=tmp_path)
    assert "| jax/op-by-op |" in (tmp_path / "pages" / "results.md").read_text()


def test_a_claim_without_its_compiler_is_skipped_and_the_compiler_is_named(tmp_path: Path) -> None:
    done = accelbench("claims", "run", "--rows", "4,33", cwd=tmp_path, play="good")
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "skipping 04-one-fused-kernel-on-targets:" in done.stderr
    assert "row 4: not-measured-yet" in done.stdout
    assert "row 33: refuted" in done.stdout


def test_a_result_of_an_older_source_is_measured_again(tmp_path: Path) -> None:
    accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    file = tmp_path / "results/claims/cpu/33-xor-with-jit-around-the-step/all.result.json"
    result = json.loads(file.read_text())
    result["fingerprint"]["workloadSource"] = "0123456789abcdef"
    file.write_text(json.dumps(result))
    again = accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    assert cases_begun(again) == ["1 of 1"]


@pytest.mark.parametrize(
    ("file", "text"), [("all.result.json", ""), ("all.result.json", "garbage"), ("run.json", '{"run": 1')]
)
def test_a_damaged_result_is_reported_before_it_is_replaced(tmp_path: Path, file: str, text: str) -> None:
    accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    damaged = Path("results/claims/cpu/33-xor-with-jit-around-the-step", file)
    (tmp_path / damaged).write_text(text)
    reported = accelbench("claims", "report", "--rows", "33", cwd=tmp_path)
    assert f"{damaged}: " in reported.stderr
    assert "| 1 | not measured yet |" in reported.stdout
    again = accelbench("claims", "run", "--rows", "33", cwd=tmp_path, play="good")
    assert f"{damaged}: " in again.stderr
    assert "row 33: refuted" in again.stdout


def test_the_report_of_a_claim_that_was_never_measured_prints_no_error(tmp_path: Path) -> None:
    assert accelbench("claims", "report", "--rows", "33", cwd=tmp_path).stderr == ""


def test_rows_with_the_same_manifest_share_its_run(tmp_path: Path) -> None:
    """Run each manifest once."""
    asked = ("--rows", "6,52")
    done = accelbench("claims", "run", "--again", *asked, cwd=tmp_path, play="good")
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert cases_begun(done) == ["1 of 1"] * 2
    assert "row 52: measured" in done.stdout
    assert accelbench("claims", "report", *asked, "--pages", "pages", cwd=tmp_path).returncode == Exit.SUCCESS
    page = (tmp_path / "pages" / "results.md").read_text()
    name = "52-gradient-descent"
    assert f"[{name}](../../examples/claims/{name}.yaml)" in page
    assert page.count(f"[{name}](../results/claims/cpu/{name}/report.md)") == 2


def test_a_claim_is_decided_on_its_first_hardware_and_others_are_shown_without_deciding(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles.yaml"
    profiles.write_text("nvidia: {platform: cpu}\n")
    more = {"play": "good", "ACCELBENCH_PROFILES": str(profiles)}
    both = ("--rows", "26,33", "--hardware", "cpu,gpu")
    accelbench("claims", "run", "--rows", "26,33", "--beside", cwd=tmp_path, **more)
    [of_network, of_xor] = json.loads(accelbench("claims", "list", *both, "-o", "json", cwd=tmp_path, **more).stdout)
    assert (of_network["verdict"], of_xor["verdict"]) == ("untestable-here", "refuted")
    accelbench("claims", "run", "--rows", "26", "--hardware", "gpu", cwd=tmp_path, **more)
    [of_network, of_xor] = json.loads(accelbench("claims", "list", *both, "-o", "json", cwd=tmp_path, **more).stdout)
    assert (of_network["verdict"], of_xor["verdict"]) == ("withheld", "refuted")
    accelbench("claims", "report", *both, "--pages", "pages", cwd=tmp_path, **more)
    page = (tmp_path / "pages" / "results.md").read_text()
    for where in ("gpu/63-mixed-precision", "cpu/63-mixed-precision"):
        assert f"(../results/claims/{where}/report.md)" in page


def test_a_run_takes_place_on_one_kind_of_hardware(tmp_path: Path) -> None:
    done = accelbench("claims", "run", "--rows", "33", "--hardware", "cpu,gpu", cwd=tmp_path, play="crash")
    assert done.returncode == Exit.USAGE


def test_a_suite_of_which_a_part_was_not_run_is_not_run(tmp_path: Path) -> None:
    listed = json.loads(accelbench("claims", "list", "--output", "json", "--hardware", "gpu", cwd=tmp_path).stdout)
    assert {each["row"]: each["verdict"] for each in listed}[27] == "not-measured-yet"
    listed = json.loads(accelbench("claims", "list", "--rows", "27", "--output", "json", cwd=tmp_path).stdout)
    assert [each["verdict"] for each in listed] == ["untestable-here"]


@pytest.mark.parametrize("command", ["list", "run", "report"])
@pytest.mark.parametrize(
    ("selection", "file", "right", "code", "expected_text"),
    [
        (
            ("33", "cpu"),
            "33-xor-with-jit-around-the-step.yaml",
            "jax/jit-step",
            Exit.INVALID_SPEC,
            'jax/jit-stp: unknown mode "jit-stp"; did you mean jit-step?',
        ),
        (
            ("27", "gpu"),
            "ledger.yaml",
            "variant: jax/jit, over: pytorch/compile",
            Exit.INTERNAL,
            'ledger.yaml: row 27: majorities: unknown variant "pytorch/compil"; did you mean pytorch/compile?',
        ),
    ],
    ids=["manifest", "ledger"],
)
def test_a_typo_in_the_claims_is_reported_with_its_place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    selection: tuple[str, str],
    file: str,
    right: str,
    code: Exit,
    expected_text: str,
) -> None:
    directory = tmp_path / "claims"
    shutil.copytree(ledger.directory(), directory)
    wrong = right.replace("jit-step", "jit-stp").replace("pytorch/compile", "pytorch/compil")
    (directory / file).write_text((directory / file).read_text().replace(right, wrong))
    monkeypatch.setattr(ledger, "directory", lambda: directory)
    rows, hardware = selection
    done = CliRunner().invoke(
        app, ["claims", command, "--rows", rows, "--hardware", hardware, "--results", str(tmp_path / "results")]
    )
    assert (done.exit_code, expected_text in done.stderr) == (code, True), done.stderr
