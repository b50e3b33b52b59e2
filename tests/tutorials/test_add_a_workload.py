"""The files and commands of the tutorial work as shown."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from accelbench.local.exits import Exit

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "add-a-workload.md").read_text()
SCRIPTS = """
import numpy, torch, softmax_jax, softmax_torch
x = numpy.random.default_rng(0).standard_normal((3, 5), dtype=numpy.float32)
print(abs(numpy.asarray(softmax_jax.softmax(x)) - softmax_torch.softmax(torch.from_numpy(x)).numpy()).max())
"""
FILE = re.compile(r"^`([\w.]+)`:\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (accelbench .*)$", re.MULTILINE)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tutorial's files, and a wheel of them unpacked as an installer would."""
    directory = tmp_path_factory.mktemp("tutorial")
    for name, text in FILE.findall(PAGE):
        (directory / name).write_text(text)
    build = "import hatchling.build, sys; sys.stdout.write(hatchling.build.build_wheel('.'))"
    named = subprocess.run([sys.executable, "-c", build], cwd=directory, check=True, stdout=subprocess.PIPE, text=True)
    wheel = directory / named.stdout.splitlines()[-1]
    subprocess.run([sys.executable, "-m", "zipfile", "-e", wheel, directory / "installed"], check=True)
    return directory


def accelbench(project: Path, *arguments: str, installed: bool) -> subprocess.CompletedProcess[str]:
    package = [str(project / "installed")] if installed else []
    path = os.pathsep.join(filter(None, [*package, os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, "-c", "from accelbench.cli.main import main; main()", *arguments],
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_page_has_the_files_and_the_commands_that_a_reader_needs() -> None:
    files = [
        "softmax_jax.py",
        "softmax_torch.py",
        "softmax_rows.py",
        "softmax.yaml",
        "linear_step.py",
        "pyproject.toml",
    ]
    assert [name for name, _ in FILE.findall(PAGE)] == files
    commands = [*("init", "check"), *("workloads", "check", "run"), *("validate", "check", "run"), "check", "workloads"]
    assert [command.split()[1] for command in COMMAND.findall(PAGE)] == commands


@pytest.mark.parametrize("name", ["softmax_rows.py", "linear_step.py"])
def test_the_examples_are_the_tutorials_workloads(name: str) -> None:
    assert (ROOT / "examples" / name).read_text() == dict(FILE.findall(PAGE))[name]


@pytest.mark.slow
def test_the_two_scripts_of_the_page_compute_the_same(project: Path) -> None:
    beside = {**os.environ, "PYTHONPATH": str(project)}
    done = subprocess.run([sys.executable, "-c", SCRIPTS], env=beside, check=True, stdout=subprocess.PIPE, text=True)
    assert float(done.stdout) < 1e-6


@pytest.mark.slow
def test_the_reference_of_the_page_computes_the_same_as_the_functions(project: Path) -> None:
    [reference] = re.findall(r"^def reference\(x\):\n.*?(?=^```)", PAGE, re.MULTILINE | re.DOTALL)
    (project / "with_reference.py").write_text((project / "softmax_rows.py").read_text() + "\n\n" + reference)
    done = accelbench(project, "check", "with_reference.py", "--set", "rows=8", installed=False)
    assert done.returncode == Exit.SUCCESS, done.stdout + done.stderr
    assert "note: the workload has no reference()" not in done.stdout


@pytest.mark.nightly
def test_the_commands_of_the_page_accept_its_files(project: Path) -> None:
    """`accelbench run` of the same script is measured by tests/e2e/test_own_script.py."""
    packaged = PAGE.index("## Give it to others")
    for found in COMMAND.finditer(PAGE):
        command, installed = found[1], found.start() > packaged
        if " run " in command:
            continue
        done = accelbench(project, *command.split()[1:], installed=installed)
        assert done.returncode == Exit.SUCCESS, f"{command}: {done.stdout}{done.stderr}"
