"""Test that an invalid manifest is refused before anything runs, with the field and what to do."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from accelbench.cli.main import app
from accelbench.local.exits import Exit
from cli.command import MANIFEST, accelbench

BAD = {
    "unknown workload": (("matmul-chain", "matmul-chian"), "spec.workload.name", "matmul-chain?"),
    "unknown parameter": (("size: 64", "sise: 64"), "spec.workload.parameters.sise", "size?"),
    "parameter out of bounds": (("size: 64", "size: 0"), "spec.workload.parameters.size", "at least 1"),
    "unknown mode": (("jax/jit", "jax/jitt"), "spec.variants[1].use", "jit?"),
    "unknown framework": (("jax/jit", "jaxx/jit"), "spec.variants[1].use", "jax?"),
    "unknown field": (("measurement:", "measurment:"), "spec.measurment", "measurement?"),
    "baseline that is no variant": (("measurement:", "baseline: jax/scan\n  measurement:"), "baseline", "jax/scan"),
    "sweep over 256 cases": (
        (
            "measurement:",
            f"sweep: [{{name: size, values: {list(range(1, 258))}}}]\n  measurement:",
        ),
        "spec.sweep",
        "256",
    ),
}


def test_an_invalid_choice_of_an_option_is_refused_with_our_message_alone() -> None:
    refused = CliRunner().invoke(app, ["report", "R", "--output", "text"])
    assert refused.exit_code == Exit.USAGE
    assert "'text'" in refused.output
    assert "'markdown'" in refused.output
    assert "Value error" not in refused.output


def validate(*arguments: str, manifest: str = "") -> Result:
    return CliRunner().invoke(app, ["validate", *arguments], input=manifest)


@pytest.mark.parametrize(("change", "path", "advice"), BAD.values(), ids=BAD.keys())
def test_a_manifest_with_an_error_is_refused_with_the_field_and_the_remedy(
    change: tuple[str, str], path: str, advice: str
) -> None:
    refused = validate("-", manifest=MANIFEST.replace(*change))
    assert refused.exit_code == Exit.INVALID_SPEC
    assert refused.stderr.startswith("standard input")
    assert path in refused.stderr
    assert advice in refused.stderr
    assert refused.stdout == ""


def test_malformed_yaml_is_refused_with_its_line() -> None:
    refused = validate("-", manifest=MANIFEST.replace("spec:", "spec: ]"))
    assert refused.exit_code == Exit.INVALID_SPEC
    assert "line 4" in refused.stderr


def test_all_problems_are_reported_at_once() -> None:
    refused = validate("-", manifest=MANIFEST.replace("size: 64", "sise: 64").replace("jax/jit", "jax/jitt"))
    assert "parameters.sise" in refused.stderr
    assert "variants[1].use" in refused.stderr


def test_a_misspelt_variant_is_reported_before_the_expectation_that_names_it_correctly() -> None:
    expected = "expectations: [{metric: speedup, variant: jax/jit, atLeast: '1'}]\n  measurement:"
    misspelt = MANIFEST.replace("use: jax/jit", "use: jax/jti").replace("measurement:", expected)
    _, first, second = validate("-", manifest=misspelt).stderr.splitlines()
    assert first.startswith("  spec.variants[1].use: ")
    assert first.endswith(" jit?")
    assert "spec.expectations: " in second


def test_every_file_is_checked_and_one_invalid_file_decides_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(MANIFEST)
    (tmp_path / "bad.yaml").write_text(MANIFEST.replace("jax/jit", "jax/jitt"))
    found = validate(str(tmp_path / "bad.yaml"), str(tmp_path / "good.yaml"))
    assert found.exit_code == Exit.INVALID_SPEC
    assert "benchmarkrun/chain is valid" in found.stdout
    assert "bad.yaml" in found.stderr


def test_problems_are_available_as_json(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(MANIFEST.replace("size: 64", "sise: 64"))
    found = validate(str(tmp_path / "bad.yaml"), "--output", "json")
    assert found.exit_code == Exit.INVALID_SPEC
    [entry] = json.loads(found.stdout)
    assert entry["valid"] is False
    assert entry["problems"][0].startswith("spec.workload.parameters.sise: ")
    assert found.stderr == ""


@pytest.mark.parametrize("number", ["0", "-1", "100000", "two"])
def test_more_processors_than_the_machine_has_is_a_usage_error(tmp_path: Path, number: str) -> None:
    done = accelbench("run", "-", "--processors", number, cwd=tmp_path, manifest=MANIFEST)
    assert done.returncode == Exit.USAGE
    assert "--processors" in done.stderr
    assert not any(tmp_path.iterdir())


def test_a_file_that_is_not_text_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "picture.yaml").write_bytes(b"\xff\xfe\x00")
    refused = validate(str(tmp_path / "picture.yaml"))
    assert refused.exit_code == Exit.USAGE
    assert "UTF-8" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "measurement.rounds.maximum=5"), "measurement.rounds.max?"),
        (("--set", "accelerator.profile=nvida"), "nvidia?"),
        (("--set", "workload.parameters.sise=5"), "size?"),
        (("--set", "measurement.rounds.max=2"), "spec.measurement.rounds"),
    ],
)
def test_run_refuses_a_bad_override_before_it_starts_anything(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = accelbench("run", "-", "--out", "out", *arguments, cwd=tmp_path, play="good", manifest=MANIFEST)
    assert done.returncode in {Exit.USAGE, Exit.INVALID_SPEC}
    assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out").exists()


def test_a_bad_override_is_named_once() -> None:
    refused = CliRunner().invoke(app, ["run", "-", "--set", "measurement.foo=3"], input=MANIFEST)
    assert refused.exit_code == Exit.USAGE
    assert refused.stderr.count("measurement.foo") == 1


def test_an_unknown_workload_to_show_is_refused_with_the_nearest() -> None:
    refused = CliRunner().invoke(app, ["workloads", "matmul-chian"])
    assert refused.exit_code == Exit.USAGE
    assert "matmul-chain?" in refused.stderr
