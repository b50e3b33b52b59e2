"""A variant in an environment of its own runs there, and nowhere else; uv installs environments, locked and cached."""

import json
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from accelbench.api.run import BenchmarkRun
from accelbench.local import environments
from accelbench.local.errors import InvalidSpecError, UsageError
from accelbench.local.exits import Exit
from accelbench.local.manifests import read_target
from cli.command import ROOT, accelbench
from cli.small_environment import make_environment, site_packages
from cli.small_registry import PROVIDED, offer_wheels, wheel

# -- options ----------------------------------------------------------------------------------------------------------


def labels(run: BenchmarkRun) -> dict[str, str | None]:
    return {variant.label: variant.environment for variant in run.spec.variants}


def test_an_environment_that_requires_a_framework_repeats_its_default_variants() -> None:
    (run,) = read_target("matmul-chain", environments=["before=jax==0.9.2 flax"])
    assert labels(run) == {"pytorch/eager": None, "jax/jit": None, "jax/jit-before": "before"}
    (environment,) = run.spec.environments
    assert environment.requirements == ("jax==0.9.2", "flax")


def test_a_chosen_variant_names_its_environment() -> None:
    words = "python3.12 jax>=0.9,<0.10"
    (run,) = read_target("matmul-chain", ["jax/jit@old", "jax/jit"], environments=[f"old={words}"])
    assert labels(run) == {"jax/jit-old": "old", "jax/jit": None}
    (environment,) = run.spec.environments
    assert (environment.python, environment.requirements) == ("3.12", ("jax>=0.9,<0.10",))


def test_an_interpreter_is_named_by_its_path_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (run,) = read_target("matmul-chain", ["jax/jit@own"], environments=["own=./venv/bin/python"])
    (environment,) = run.spec.environments
    assert environment.python == str(tmp_path / "venv/bin/python")


@pytest.mark.parametrize(
    ("variants", "options", "message"),
    [
        (["jax/jit@befor"], ["before=jax"], 'no environment is called "befor"'),
        (["jax/jit"], ["before=jax==0.9.2"], "no variant runs in before"),
        (["jax/jit@before"], ["before=python3.10 jax"], "Python 3.11 to 3.13"),
        (["jax/jit@before"], ["before=python3.12"], "give requirements to install"),
        (["jax/jit@before"], ["before=jax", "before=jax==0.9.2"], 'two environments are called "before"'),
    ],
)
def test_contradicting_options_are_refused_before_anything_is_installed(
    variants: list[str], options: list[str], message: str
) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        read_target("matmul-chain", variants, environments=options)
    assert message in refused.value.explanation()


@pytest.mark.parametrize("text", ["before", "=jax", "before=", "before= "])
def test_an_option_in_another_form_is_refused_with_the_right_form(text: str) -> None:
    with pytest.raises(UsageError, match="write NAME=REQUIREMENT"):
        read_target("matmul-chain", environments=[text])


def test_a_manifest_has_its_own_environments(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text((ROOT / "examples" / "01-matmul-chain.yaml").read_text())
    with pytest.raises(UsageError, match="lists its environments itself"):
        read_target(str(file), environments=["before=jax"])


# -- installing -------------------------------------------------------------------------------------------------------


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a directory from which uv installs, in place of a registry."""
    return offer_wheels(tmp_path, monkeypatch)


def installed(*options: str) -> tuple[Any, list[str]]:
    """Return the first environment, and the lines that announced its installation."""
    names = [text.partition("=")[0] for text in options]
    (run,) = read_target("matmul-chain", [f"jax/jit@{name}" for name in names], environments=list(options))
    announced: list[str] = []
    return environments.install(run, announced.append)[0], announced


def test_requirements_are_installed_once_locked_and_compiled(wheels: Path) -> None:
    first, announced = installed("before=jax<0.9.2")
    assert announced == ["environment before: installing jax<0.9.2"]
    assert first.packages["jax"] == "0.9.1"
    assert first.packages.keys() == {"jax", *(name.replace("_", "-") for name in PROVIDED)}
    site = site_packages(Path(first.interpreter).parents[1])
    assert list(site.glob("__pycache__/jax.*.pyc"))
    shown = subprocess.run(
        [first.interpreter, "-c", "import jax; print(jax.__file__)"], capture_output=True, check=True
    )
    assert shown.stdout.decode().strip() == str(site / "jax.py")
    wheel(wheels, "jax", "0.9.1.post1")  # the lock stays as it is
    again, announced = installed("again=jax<0.9.2")
    assert (again.interpreter, again.packages, announced) == (first.interpreter, first.packages, [])


@pytest.mark.usefixtures("wheels")
def test_an_interrupted_installation_is_repeated() -> None:
    whole, _ = installed("before=jax==0.9.2")
    directory = Path(whole.interpreter).parents[2]
    (directory / environments.LOCK).unlink()
    (site_packages(directory / "venv") / "jax.py").unlink()
    again, announced = installed("before=jax==0.9.2")
    assert announced
    assert (site_packages(directory / "venv") / "jax.py").exists()
    assert again == whole


@pytest.mark.usefixtures("wheels")
@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("before=jax==0.99", "jax==0.99: "),
        ("before=jax==0.99", "Choose releases that exist, fit together and support this Python"),
        ("before=jax==0.6.2", "JAX 0.6.2, and accelbench measures JAX from 0.7"),
        ("before=/no/such/python jax", "/no/such/python"),
        ("before=/no/such/python jax", "install it, or give the path of an interpreter"),
    ],
)
def test_requirements_that_cannot_be_installed_are_refused_with_the_message_of_uv(option: str, message: str) -> None:
    with pytest.raises(InvalidSpecError) as refused:
        installed(option)
    (problem,) = refused.value.problems
    assert problem.path == "spec.environments[0]"
    assert message in problem.message


def test_without_uv_the_error_explains_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environments, "find_uv", lambda: None)
    with pytest.raises(InvalidSpecError) as refused:
        installed("before=jax==0.9.2")
    assert "accelbench[environments]" in refused.value.explanation()


def test_an_environment_gets_the_packages_of_accelbenchs_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(environments.LAUNCH_REQUIREMENTS) <= {*project["dependencies"], *extras["jax"], *extras["torch"]}


# -- measuring --------------------------------------------------------------------------------------------------------

SCRIPT = """
def arrays(rng):
    return {"x": rng.normal(size=8)}


def numpy(x):
    import only_in_the_environment

    return x * only_in_the_environment.FACTOR
"""


def checked(cwd: Path, file: str, *options: str) -> list[dict[str, Any]]:
    done = accelbench("check", file, "--output", "json", *options, cwd=cwd)
    assert done.returncode in {Exit.SUCCESS, Exit.INVALID_MEASUREMENT, Exit.VARIANT_FAILED}, done.stderr
    (report,) = json.loads(done.stdout)
    variants: list[dict[str, Any]] = report["variants"]
    return variants


def outcome(variant: dict[str, Any], name: str) -> tuple[str, str]:
    (check,) = [check for check in variant["checks"] if check["name"] == name]
    return check["outcome"], check["reading"]


@pytest.mark.slow
def test_another_installation_on_the_path_of_an_environment_fails_the_variant_that_imported_it(tmp_path: Path) -> None:
    clean = make_environment(tmp_path / "clean")
    leaking = make_environment(tmp_path / "leaking")
    default = make_environment(tmp_path / "default")
    path = site_packages(default.parents[1])
    (site_packages(leaking.parents[1]) / "default.pth").write_text(f"import sys; sys.path.insert(0, {str(path)!r})\n")
    options = ("--set", "size=8", "--variant", "numpy/eager")
    options += ("--variant", "numpy/eager@clean", "--environment", f"clean={clean}")
    options += ("--variant", "numpy/eager@leaking", "--environment", f"leaking={leaking}")
    own, held, leaked = checked(tmp_path, "matmul-chain", *options)
    assert not [check for check in own["checks"] if check["name"] == "environment"]
    assert outcome(held, "environment")[0] == "passed"
    assert outcome(held, "parity")[0] == "passed"
    assert outcome(leaked, "environment")[0] == "failed"
    assert str(path / "numpy") in outcome(leaked, "environment")[1]


@pytest.mark.slow
def test_the_baselines_own_program_is_the_reference_in_its_environment(tmp_path: Path) -> None:
    interpreter = make_environment(tmp_path / "own")
    (site_packages(interpreter.parents[1]) / "only_in_the_environment.py").write_text("FACTOR = 3.0\n")
    (tmp_path / "triple.py").write_text(SCRIPT)
    options = ("--variant", "numpy/eager@own", "--environment", f"own={interpreter}")
    (variant,) = checked(tmp_path, "triple.py", *options)
    assert variant["failure"] is None
    assert outcome(variant, "parity")[0] == "passed"


@pytest.mark.slow
def test_without_the_baselines_environment_outputs_have_no_reference_and_the_reason_is_given(tmp_path: Path) -> None:
    (tmp_path / "double.py").write_text(
        SCRIPT.replace("    import only_in_the_environment\n\n", "").replace("only_in_the_environment.FACTOR", "2")
    )
    options = ("--variant", "numpy/eager@gone", "--environment", "gone=/no/such/python", "--variant", "numpy/eager")
    broken, other = checked(tmp_path, "double.py", *options)
    assert broken["failure"].startswith("Environment")
    state, reading = outcome(other, "parity")
    assert state == "untested"
    assert "/no/such/python" in reading
