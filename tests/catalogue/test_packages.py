"""Somebody's installed package whose workload is broken: said with its name and cause at every door, no more."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from accelbench import catalogue
from accelbench.api.profiles import Profiles
from accelbench_operator.runs.accept import Refused, accept
from cli.command import ROOT, accelbench
from operator_world.builders import run_manifest

GOOD = '''"""Somebody's workload."""

from accelbench.workload import Arrays, Cost, Program, Workload


class Doubling(Workload):
    """x <- 2 x."""

    name = "doubling"
    modes = {"jax": ("jit",)}

    def arrays(self, parameters, rng):
        return Arrays(state={"x": rng.standard_normal(8)})

    def reference(self, parameters, arrays, units):
        return {"x": 2**units * arrays.state["x"]}

    def cost(self, parameters, float_bytes):
        return Cost(flops=8.0, bytes=64.0)

    def jax(self, parameters, arrays, tools):
        return Program(state=tools.put(arrays.state), step=lambda s, _: ({"x": s["x"] + s["x"]}, None))
'''
MANIFEST = """\
apiVersion: accelbench.dev/v1alpha1
kind: BenchmarkRun
metadata: {name: theirs}
spec:
  workload: {name: doubling}
  variants: [{use: jax/jit}]
"""
PLACE = "workload doubling of package some-workloads (some_workloads:Doubling): "
BROKEN = [
    pytest.param(GOOD.replace("rng):", "rng)"), "SyntaxError: expected ':' (some_workloads.py, line 12)", id="syntax"),
    pytest.param(None, "ModuleNotFoundError: No module named 'some_workloads'", id="no module"),
    pytest.param(
        "import gone_since\n" + GOOD,
        "some_workloads.py, line 1: ModuleNotFoundError: No module named 'gone_since'",
        id="imports what is not there",
    ),
    pytest.param(
        "Tripling = 1\n", "AttributeError: module 'some_workloads' has no attribute 'Doubling'", id="no class"
    ),
    pytest.param(
        "class Doubling:\n    name = 'doubling'\n",
        "this is not a class that inherits accelbench.workload.Workload",
        id="no workload",
    ),
    pytest.param(
        GOOD.replace('"doubling"', '"dubling"'),
        'the name of class Doubling is "dubling", not the entry point\'s',
        id="another name",
    ),
    pytest.param(
        GOOD + "\n    def __init__(self):\n        self.size = 1 / 0\n",
        "some_workloads.py, line 25: ZeroDivisionError: division by zero",
        id="constructor",
    ),
    pytest.param("import sys\n\nsys.exit(0)\n", "some_workloads.py, line 3: SystemExit: 0: it ends the", id="exit"),
    pytest.param(
        GOOD.replace('("jit",)', '("jti",)'),
        'some_workloads.py, line 6: class Doubling: modes: jax: unknown mode "jti"; did you mean jit?',
        id="modes",
    ),
]

Install = Callable[[str | None], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Installs a package whose module has this text, or has no module; the directory it is in."""

    def install(text: str | None) -> Path:
        site = tmp_path / "site"
        about = site / "some_workloads-1.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: some-workloads\nVersion: 1\n")
        (about / "entry_points.txt").write_text("[accelbench.workloads]\ndoubling = some_workloads:Doubling\n")
        if text is not None:
            (site / "some_workloads.py").write_text(text)
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", f"{site}:{ROOT}:{ROOT / 'runner'}:{ROOT / 'operator'}")
        catalogue._entry_points.cache_clear()
        return site

    yield install
    catalogue._entry_points.cache_clear()
    catalogue._find_in_packages.cache_clear()


@pytest.fixture(autouse=True)
def _forget_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "some_workloads", sys)
    monkeypatch.delitem(sys.modules, "some_workloads")


def test_a_package_that_works_is_found(install: Install) -> None:
    install(GOOD)
    assert list(catalogue.find("doubling").variants()) == ["jax/jit"]


@pytest.mark.parametrize(("text", "cause"), BROKEN)
def test_a_package_that_is_broken_is_named_with_the_cause(install: Install, text: str | None, cause: str) -> None:
    install(text)
    with pytest.raises(catalogue.UnknownWorkloadError) as refused:
        catalogue.find("doubling")
    assert str(refused.value).startswith(PLACE + cause)


@pytest.mark.parametrize(("text", "cause"), BROKEN)
def test_a_run_of_a_broken_package_is_not_accepted(install: Install, text: str | None, cause: str) -> None:
    install(text)
    refused = accept(run_manifest(workload={"name": "doubling"}), Profiles(), "runner:1")
    assert isinstance(refused, Refused)
    assert refused.message.startswith(f"spec.workload.name: {PLACE}{cause}")


SIZED = (
    GOOD.replace("Cost, Program, Workload", "Cost, Measure, Program, Workload, WorkloadParameters")
    + """
    class Parameters(WorkloadParameters):
        size: int = 1
"""
)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            "measure(self, parameters):\n        return Measure(parity_units=8 // parameters.size)",
            "some_workloads.py, line 28: ZeroDivisionError: integer division or modulo by zero",
        ),
        (
            "memory(self, parameters, float_bytes):\n        return 8 / parameters.size",
            "the workload's cost cannot be computed: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_a_run_whose_workload_raises_is_not_accepted(install: Install, method: str, message: str) -> None:
    install(f"{SIZED}\n    def {method}\n")
    run = run_manifest(workload={"name": "doubling"}, variants=[{"use": "jax/jit"}], sizes=(0,))
    refused = accept(run, Profiles(), "runner:1")
    assert isinstance(refused, Refused)
    assert refused.message == f"spec.workload: doubling: {message}"


def test_the_list_shows_broken_workloads_and_all_others(install: Install, tmp_path: Path) -> None:
    install("1 / 0\n")
    cause = f"{PLACE}some_workloads.py, line 1: ZeroDivisionError: division by zero"
    listed = accelbench("workloads", cwd=tmp_path, COLUMNS="400")
    assert listed.returncode == 0, listed.stderr
    assert f"broken: {cause}" in listed.stdout
    assert "matmul-chain" in listed.stdout
    described = json.loads(accelbench("workloads", "--output", "json", cwd=tmp_path).stdout)
    assert {"name": "doubling", "broken": cause} in described
    assert [each["name"] for each in described] == list(catalogue.names())


@pytest.mark.parametrize("asked", [("workloads", "doubling"), ("validate", "theirs.yaml"), ("run", "theirs.yaml")])
def test_a_command_that_needs_a_broken_workload_gives_the_reason(
    install: Install, tmp_path: Path, asked: tuple[str, ...]
) -> None:
    install("1 / 0\n")
    (tmp_path / "theirs.yaml").write_text(MANIFEST)
    done = accelbench(*asked, cwd=tmp_path, COLUMNS="400")
    assert done.returncode != 0
    assert "ZeroDivisionError: division by zero" in done.stderr
    assert "package some-workloads" in done.stderr
    assert "Traceback" not in done.stderr
