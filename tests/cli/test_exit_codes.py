"""Test every documented exit code with a process that ends with it."""

import json
import subprocess
from pathlib import Path

import pytest

from accelbench.local.exits import Exit
from accelbench.local.run import CaseOutcome, exit_for
from cli.command import MANIFEST, START, accelbench
from report import sample


def test_a_valid_run_ends_with_success_and_a_verdict_on_standard_output(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=MANIFEST)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "jax/jit" in done.stdout
    assert "faster" in done.stdout
    assert "results: out" in done.stderr


def test_a_wrong_option_is_a_usage_error(tmp_path: Path) -> None:
    done = accelbench("run", "--frobnicate", cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert "--frobnicate" in done.stderr
    assert done.stdout == ""


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    done = accelbench("run", "absent.yaml", cwd=tmp_path)
    assert done.returncode == Exit.USAGE
    assert "absent.yaml" in done.stderr


def test_a_manifest_that_is_not_valid_ends_with_three_and_leaves_nothing_behind(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, manifest=MANIFEST.replace("jax/jit", "jax/jitt"))
    assert done.returncode == Exit.INVALID_SPEC
    assert "spec.variants[1].use" in done.stderr
    assert "jit?" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_failed_variant_is_named_and_the_time_of_the_other_is_kept(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="variant-failed", manifest=MANIFEST)
    assert done.returncode == Exit.VARIANT_FAILED
    assert "(OutOfMemory)" in done.stdout
    assert "1.00 ms" in done.stdout


def test_an_invalid_comparison_ends_with_five_and_shows_the_reading(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="invalid", manifest=MANIFEST)
    assert done.returncode == Exit.INVALID_MEASUREMENT
    assert "invalid: parity" in done.stdout
    assert "parity (jax/jit):" in done.stdout
    assert "2.04x" not in done.stdout


def test_an_observation_is_a_success_and_is_shown(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="observed", manifest=MANIFEST)
    assert done.returncode == Exit.SUCCESS, done.stderr
    assert "jax/jit raised KeyReuseError." in done.stdout


def test_an_observation_on_another_device_than_requested_ends_with_five(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="observed-elsewhere", manifest=MANIFEST)
    assert done.returncode == Exit.INVALID_MEASUREMENT
    assert "wrong-device: on cpu" in done.stdout


def test_an_expectation_that_is_not_met_ends_with_six(tmp_path: Path) -> None:
    unmet = MANIFEST + '  expectations: [{metric: speedup, variant: jax/jit, atLeast: "9"}]\n'
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=unmet)
    assert done.returncode == Exit.EXPECTATION_NOT_MET
    assert "not-met" in done.stdout


def test_an_expectation_that_is_met_changes_nothing(tmp_path: Path) -> None:
    met = MANIFEST + '  expectations: [{metric: speedup, variant: jax/jit, atLeast: "1.5"}]\n'
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="good", manifest=met)
    assert done.returncode == Exit.SUCCESS
    assert ": met" in done.stdout


def test_a_crash_of_the_runner_is_an_internal_error_and_its_last_checkpoint_is_kept(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play="crash", manifest=MANIFEST)
    assert done.returncode == Exit.INTERNAL
    assert "checkpoint" in done.stderr
    assert "RuntimeError:" in done.stderr
    assert "partial:" in done.stdout
    assert json.loads((tmp_path / "out" / "all.result.json").read_text())["complete"] is False


@pytest.mark.parametrize("play", ["silent", "altered"])
def test_a_runner_without_a_plausible_result_is_an_internal_error(tmp_path: Path, play: str) -> None:
    done = accelbench("run", "-", "--out", "out", cwd=tmp_path, play=play, manifest=MANIFEST)
    assert done.returncode == Exit.INTERNAL
    assert "out/all.log" in done.stderr
    assert ("altered" in done.stderr) == (play == "altered")
    assert not (tmp_path / "out" / "all.result.json").exists()


def test_the_worst_of_several_outcomes_decides() -> None:
    assert Exit.worst([]) is Exit.SUCCESS
    assert Exit.worst([Exit.SUCCESS, Exit.EXPECTATION_NOT_MET, Exit.INVALID_MEASUREMENT]) is Exit.INVALID_MEASUREMENT
    assert Exit.worst([Exit.VARIANT_FAILED, Exit.INVALID_MEASUREMENT]) is Exit.VARIANT_FAILED
    assert Exit.worst([Exit.INTERNAL, Exit.VARIANT_FAILED]) is Exit.INTERNAL


@pytest.mark.parametrize("command", [(), ("run",)])
def test_help_lists_every_exit_code(command: tuple[str, ...]) -> None:
    shown = subprocess.run([*START, *command, "--help"], capture_output=True, text=True, check=True).stdout
    for code in Exit:
        assert f"  {code.value:>3}  {code.meaning}" in shown


def test_accepted_noise_that_occurred_ends_with_seven_and_shows_an_interval_without_a_verdict(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", "--accept-noise", cwd=tmp_path, play="noisy", manifest=MANIFEST)
    assert done.returncode == Exit.NOISY
    assert "2.01 to 2.07" in done.stdout
    assert "noisy" in done.stdout
    case = json.loads((tmp_path / "out" / "all.result.json").read_text())["case"]
    assert case["measurement"]["acceptNoise"] is True


def test_accepted_noise_that_did_not_occur_is_a_success(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", "--accept-noise", cwd=tmp_path, play="good", manifest=MANIFEST)
    assert done.returncode == Exit.SUCCESS
    assert "noisy" not in done.stdout


def test_expected_disturbances_are_printed_on_standard_error_alone(tmp_path: Path) -> None:
    done = accelbench("run", "-", "--out", "out", "-o", "json", cwd=tmp_path, play="busy", manifest=MANIFEST)
    lines = done.stderr.splitlines()
    warned = next(
        number for number, line in enumerate(lines) if line.startswith("warning: python (pid 1234) takes 98 %")
    )
    assert warned < next(number for number, line in enumerate(lines) if line.startswith("round 1"))
    assert "pid 1234" not in done.stdout


@pytest.mark.parametrize(("timed", "code"), [(True, Exit.SUCCESS), (False, Exit.INVALID_MEASUREMENT)])
def test_a_single_variant_is_valid_if_it_has_a_time(timed: bool, code: Exit) -> None:
    use = sample.USES[0]
    alone = sample.variant(use, "0.001")
    variant = alone if timed else alone.model_copy(update={"seconds": None})
    result = sample.result(case=sample.case((use,)), variants=(variant,), comparisons=())
    assert (result.valid, exit_for([CaseOutcome(result.case, result)])) == (timed, code)
