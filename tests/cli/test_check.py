"""Test `accelbench init` and `accelbench check`."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from accelbench.cli.main import app
from accelbench.local.exits import Exit
from cli.command import MANIFEST, ROOT, accelbench

pytestmark = pytest.mark.slow

ARRAYS = """
def arrays(rng):
    return {"x": rng.standard_normal((2, 8)), "w": rng.standard_normal((8, 8))}
"""
NUMPY_SPOILED = f"""{ARRAYS}
def reference(x, w):
    import math

    import numpy as np

    return np.vectorize(math.tanh)(x @ w)


def numpy_spoils(x, w):
    import numpy as np

    np.tanh = None
    return np.tanh(x @ w)


def numpy_relies(x, w):
    import numpy as np

    return np.tanh(x @ w)
"""
FORWARD_MODE_SPOILED = f"""{ARRAYS}
def reference(x, w):
    import numpy as np

    t = np.tanh(x[0] @ w)
    return w @ ((2 - 8 * t**2 + 6 * t**4) * (x[1] @ w))


def derivative(x, w):
    import torch

    gradient = torch.func.grad(lambda x: (torch.tanh(x @ w) ** 2).sum())
    return torch.func.jvp(gradient, (x[0],), (x[1],))[1]


def pytorch_spoils(x, w):
    import torch

    return torch.compile(derivative, backend="aot_eager", fullgraph=True)(x, w)


def pytorch_relies(x, w):
    return derivative(x, w)
"""
"""In PyTorch 2.15, compiling a forward derivative along a row of the same tensor fails, and after it every forward
derivative in the process."""


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory in which `accelbench init` has run."""
    directory = tmp_path_factory.mktemp("started")
    done = accelbench("init", "my_filter", "--jax", "filter_jax", cwd=directory)
    assert done.returncode == Exit.SUCCESS, done.stderr
    return directory


def checked(directory: Path, file: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return accelbench("check", file, *arguments, cwd=directory)


def test_the_script_of_init_passes_every_check(started: Path) -> None:
    done = checked(started, "my_filter.yaml")
    assert done.returncode == Exit.SUCCESS, done.stdout + done.stderr
    for variant in ("pytorch/eager", "jax/jit"):
        assert re.search(rf"^{variant}: \d+ passed$", done.stdout, re.MULTILINE)
        assert f"{variant}: run 2" in done.stderr


def test_a_script_alone_is_checked_and_a_wrong_step_is_named(started: Path) -> None:
    text = (started / "my_filter.py").read_text()
    wrong = started / "wrong_filter.py"
    wrong.write_text(text.replace("(1 + jnp.square(x))", "(2 + jnp.square(x))"))
    done = checked(started, "wrong_filter.py", "--output", "json", "--set", "size=64")
    assert done.returncode == Exit.INVALID_MEASUREMENT, done.stdout + done.stderr
    [case] = json.loads(done.stdout)
    outcomes = {
        variant["name"]: {check["name"]: check["outcome"] for check in variant["checks"]}
        for variant in case["variants"]
    }
    assert outcomes["jax/jit"]["parity"] == "failed"
    assert outcomes["jax/jit"]["depends-on-inputs"] == "untested"
    assert set(outcomes["pytorch/eager"].values()) == {"passed"}
    assert sorted(path.name for path in started.iterdir()) == ["my_filter.py", "my_filter.yaml", "wrong_filter.py"]


@pytest.mark.parametrize(
    ("framework", "text"),
    [("numpy", NUMPY_SPOILED), pytest.param("pytorch", FORWARD_MODE_SPOILED, marks=pytest.mark.nightly)],
)
def test_a_variant_that_damages_its_process_does_not_affect_the_next_one(
    tmp_path: Path, framework: str, text: str
) -> None:
    (tmp_path / "spoiling.py").write_text(text)
    done = checked(tmp_path, "spoiling.py", "--output", "json")
    [case] = json.loads(done.stdout)
    spoils, relies = case["variants"]  # in the order in which they ran
    assert (spoils["name"], relies["name"]) == (f"{framework}_spoils/eager", f"{framework}_relies/eager")
    assert spoils["failure"], "it must fail for the test to mean anything"
    assert relies["failure"] is None
    assert {check["name"]: check["outcome"] for check in relies["checks"]}["parity"] == "passed"


def test_a_script_that_declares_its_variants_is_checked_in_all_of_them() -> None:
    from accelbench.local.manifests import read_target

    [run] = read_target(str(ROOT / "examples" / "linear_step.py"))
    assert [variant.use for variant in run.spec.variants] == ["pytorch/eager", "jax/jit", "pytorch/by-hand"]
    assert run.baseline == "pytorch/eager"


def test_a_script_that_declares_no_variants_is_checked_in_one_mode_of_each_framework(started: Path) -> None:
    from accelbench.local.manifests import read_target

    [run] = read_target(str(started / "my_filter.py"))
    assert [variant.use for variant in run.spec.variants] == ["pytorch/eager", "jax/jit"]


def test_the_manifest_that_init_writes_takes_as_long_as_its_script_alone(started: Path) -> None:
    from accelbench.local.manifests import read_target

    [manifest], [script] = (read_target(str(started / f"my_filter.{suffix}")) for suffix in ("yaml", "py"))
    assert manifest.spec.measurement.time_limit_seconds == script.spec.measurement.time_limit_seconds


@pytest.mark.parametrize(
    ("name", "text", "expected_text"),
    [
        ("broken.py", "def step(:\n", "broken.py, line 1: "),
        (
            "my filter.py",
            "",
            "my filter.py: a script's name begins with a letter or a digit of ASCII and has only these",
        ),
        ("broken.yaml", MANIFEST.replace("jax/jit", "jax/jitt"), "jit?"),
    ],
)
def test_a_script_that_cannot_be_checked_is_refused_with_the_remedy(
    tmp_path: Path, name: str, text: str, expected_text: str
) -> None:
    (tmp_path / name).write_text(text)
    refused = CliRunner().invoke(app, ["check", str(tmp_path / name)])
    assert refused.exit_code == Exit.INVALID_SPEC
    assert expected_text in refused.stderr


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    refused = CliRunner().invoke(app, ["check", str(tmp_path / "absent.py")])
    assert refused.exit_code == Exit.USAGE
    assert "absent.py: no such file" in refused.stderr


@pytest.mark.parametrize("suffix", ["py", "yaml"])
def test_a_mistyped_file_name_is_answered_with_the_nearest_one(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"my_filter.{suffix}").write_text("")
    refused = CliRunner().invoke(app, ["check", str(tmp_path / f"my_filtr.{suffix}")])
    assert refused.exit_code == Exit.USAGE
    assert f"my_filter.{suffix}?" in " ".join(refused.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("play", "code"),
    [("good", Exit.SUCCESS), ("variant-failed", Exit.VARIANT_FAILED), ("invalid", Exit.INVALID_MEASUREMENT)],
)
def test_the_exit_codes_of_check_are_those_of_run(tmp_path: Path, play: str, code: Exit) -> None:
    done = accelbench("check", "-", cwd=tmp_path, play=play, manifest=MANIFEST)
    assert done.returncode == code, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_runner_without_a_result_is_an_internal_error(tmp_path: Path) -> None:
    done = accelbench("check", "-", cwd=tmp_path, play="silent", manifest=MANIFEST)
    assert done.returncode == Exit.INTERNAL
    assert "status 3" in done.stderr


def test_init_overwrites_nothing(started: Path) -> None:
    before = (started / "my_filter.yaml").read_text()
    again = accelbench("init", "my_filter", cwd=started)
    assert again.returncode == Exit.USAGE
    assert "my_filter.py" in again.stderr
    assert (started / "my_filter.yaml").read_text() == before


def test_the_functions_have_the_requested_names(started: Path) -> None:
    text = (started / "my_filter.py").read_text()
    assert "def filter_jax(x):" in text
    assert text.endswith("\n\n\njax = filter_jax\n")
    assert "def pytorch(x):" in text
    assert "$" not in text


@pytest.mark.parametrize(
    ("arguments", "expected_text"),
    [
        (["Filter!"], "lower-case letters"),
        (["jax"], "jax.py would hide the Python package jax: choose another name"),
        (["xor"], "accelbench already has a workload xor"),
        (["mine", "--jax", "1st"], "1st is not a valid function name"),
        (["mine", "--pytorch", "lambda"], "lambda is not a valid function name"),
        (["mine", "--jax", "reference"], "another function of the script is already called reference"),
        (["mine", "--jax", "mine", "--pytorch", "mine"], "another function of the script is already called mine"),
    ],
)
def test_init_refuses_names_that_cannot_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected_text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = CliRunner().invoke(app, ["init", *arguments])
    assert refused.exit_code == Exit.USAGE
    assert expected_text in " ".join(refused.stderr.split())
    assert list(tmp_path.iterdir()) == []
