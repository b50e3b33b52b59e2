"""Test `accelbench versions` with a fake runner and packages that a directory offers, and its refusals without any."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from accelbench.api import result as measured
from accelbench.cli.main import app
from accelbench.local.exits import Exit
from cli.command import MANIFEST, accelbench
from cli.small_registry import offer_wheels, wheel

RELEASES = ("jax==0.9.1", "jax==0.9.2")


def refused(*arguments: str) -> Result:
    done = CliRunner().invoke(app, ["versions", *arguments])
    assert not Path("results").exists()
    return done


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((*RELEASES,), Exit.USAGE, "give either --workload"),
        ((*RELEASES, "--workload", "mlp", "--suite", "smoke"), Exit.USAGE, "give either --workload"),
        ((*RELEASES, "--suite", "smok"), Exit.USAGE, "did you mean smoke?"),
        ((*RELEASES, "--suite", "smoke", "--variant", "jax/jit"), Exit.USAGE, "spec.runs[].variants"),
        ((*RELEASES, "--workload", "layer-nrm"), Exit.USAGE, "did you mean layer-norm?"),
        ((*RELEASES, "--workload", "mlp", "--set", "hiden=8"), Exit.USAGE, "did you mean hidden?"),
        ((*RELEASES, "--workload", "mlp", "--variant", "jax/jt"), Exit.INVALID_SPEC, "did you mean jit?"),
        (("jaxx==0.9.1", "jax", "--workload", "mlp"), Exit.USAGE, "did you mean jax?"),
        (("jax==0.6.2", "jax", "--workload", "mlp"), Exit.USAGE, "measures JAX from 0.7"),
    ],
)
def test_a_mistake_is_refused_before_anything_is_installed(
    arguments: tuple[str, ...], code: Exit, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = refused(*arguments)
    assert (done.exit_code, message in " ".join(done.stderr.split())) == (code, True), done.stderr


def test_what_cannot_be_installed_is_named_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    offer_wheels(tmp_path, monkeypatch)
    done = refused("jax==0.99", "jax==0.9.2", "--workload", "mlp")
    assert done.exit_code == Exit.INVALID_SPEC
    assert "spec.environments[0]: jax==0.99: " in done.stderr
    assert "Choose releases that exist" in done.stderr


@pytest.mark.slow
def test_releases_are_measured_in_one_run_reported_and_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheels = offer_wheels(tmp_path, monkeypatch)
    wheel(wheels, "flax", "0.12.6")
    (tmp_path / "chain.yaml").write_text(MANIFEST)
    command = ("versions", "jax==0.9.1", "jax==0.9.2 flax", "--workload", "chain.yaml", "--workload", "mlp")
    done = accelbench(*command, "-o", "json", cwd=tmp_path, play="good")
    assert done.returncode == Exit.SUCCESS, done.stderr
    report = json.loads(done.stdout)
    assert [(each["case"], each["variant"], each["baseline"]) for each in report["comparisons"]] == [
        ("chain", "jax-0.9.2", "jax-0.9.1"),
        ("mlp", "jax-0.9.2", "jax-0.9.1"),
    ]
    assert report["alsoDifferent"] == [{"flax": {"jax-0.9.1": "none", "jax-0.9.2": "0.12.6"}}]
    results = tmp_path / "results/versions/jax-0.9.1-jax-0.9.2"
    assert "also different" in (results / "suite.md").read_text()

    # Nothing is left to measure: a runner that crashes is not started.
    again = accelbench(*command, cwd=tmp_path, play="crash")
    assert (again.returncode, again.stderr.count("already measured")) == (Exit.SUCCESS, 2), again.stderr


@pytest.mark.slow
@pytest.mark.nightly
def test_two_minors_of_jax_from_a_registry_are_compared(tmp_path: Path) -> None:
    command = ("versions", "jax==0.8.3", "jax==0.9.2", "--workload", "matmul-chain", "--results", "out")
    command += ("--set", "measurement.rounds.min=3", "--set", "measurement.rounds.max=3", "--set", "size=64")
    command += ("--set", "measurement.acceptNoise=true", "--set", "measurement.timeLimitSeconds=900")
    done = accelbench(*command, "-o", "json", cwd=tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    result = measured.Result.model_validate_json((tmp_path / "out/matmul-chain/all.result.json").read_text())
    assert result.complete, done.stderr
    assert not result.failed_variants
    assert result.fingerprint["variant.jax-0.8.3.version.jax"] == "0.8.3"
    assert result.fingerprint["variant.jax-0.9.2.version.jax"] == "0.9.2"
    assert {check.outcome for check in result.certificate.checks if check.name in {"environment", "parity"}} == {
        "passed"
    }
    assert "version.jax" not in result.fingerprint
    kernels = {each["number"]: each["byRelease"] for each in json.loads(done.stdout)["programs"]}["kernelsPerCall"]
    assert kernels.keys() == {"jax-0.8.3", "jax-0.9.2"}
    assert all(kernels.values())
