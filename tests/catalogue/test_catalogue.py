"""Workloads are found by name, nothing heavy is imported for it, and every door refuses the same things."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from accelbench import catalogue, workloads
from accelbench.api.run import BenchmarkRun
from accelbench.plan.problems import check_run
from accelbench.problem import Problem
from launch.launching import install_odd_workloads

FOUR = ["jax/jit", "jax/op-by-op", "pytorch/eager", "pytorch/compile"]
XOR = [
    "pytorch/nn",
    "pytorch/no-optimizer",
    "pytorch/no-nn",
    "pytorch/compile",
    "pytorch/compile-whole",
    "jax/op-by-op",
    "jax/jit-pieces",
    "jax/jit-step",
    "jax/scan-epochs",
]


FIND_ALL = """
import sys
from accelbench import catalogue
for name in catalogue.names():
    catalogue.find(name).variants()
print(sorted({"numpy", "scipy", "jax", "torch", "kubernetes", "kopf"} & sys.modules.keys()))
"""


def run(**spec: Any) -> BenchmarkRun:
    return BenchmarkRun.model_validate(
        {
            "apiVersion": "accelbench.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "test"},
            "spec": {"workload": {"name": "matmul-chain"}, "variants": [{"use": "jax/jit"}], **spec},
        }
    )


def problems(**spec: Any) -> list[tuple[str, str]]:
    return [(problem.path, problem.message) for problem in check_run(run(**spec))]


@pytest.mark.parametrize("name", catalogue.names())
def test_a_workload_has_the_name_of_its_file_and_a_description(name: str) -> None:
    workload = catalogue.find(name)
    assert workload.name == name
    assert (workload.__class__.__doc__ or "").strip()
    assert workload.variants()
    for field in workload.Parameters.model_fields.values():
        assert field.description
        assert not field.is_required()


MOVES_NOTHING = {"dlpack"}
"""It hands over memory, which costs nothing that can be counted."""


@pytest.mark.parametrize("name", catalogue.names())
def test_a_workload_knows_its_cost_and_unit(name: str) -> None:
    workload = catalogue.find(name)
    parameters = catalogue.parse_parameters(workload, {})
    measure = workload.measure(parameters)
    assert measure.unit
    if measure.protocol != "observe" and name not in MOVES_NOTHING:
        cost = workload.cost(parameters, float_bytes=4)
        assert min(cost.flops, cost.bytes) >= 0
        assert max(cost.flops, cost.bytes) > 0


def test_a_workload_is_a_file_of_a_few_pages_at_most() -> None:
    for folder in workloads.__path__:
        for file in Path(folder).glob("*.py"):
            assert len(file.read_text().splitlines()) < 350, file.name


def test_the_catalogue_imports_no_numbers_and_no_framework() -> None:
    heavy = subprocess.run(
        [
            sys.executable,
            "-c",
            FIND_ALL,
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert heavy.strip() == "[]"


def test_exclusive_or_has_exactly_its_nine_variants() -> None:
    assert list(catalogue.find("xor").variants()) == XOR


def test_an_unknown_workload_is_refused_with_the_nearest() -> None:
    with pytest.raises(catalogue.UnknownWorkloadError, match="did you mean matmul-chain"):
        catalogue.find("matmul-chian")


def test_strings_become_what_the_field_is() -> None:
    matmul, xor = catalogue.find("matmul-chain"), catalogue.find("xor")
    assert catalogue.parse_parameters(matmul, {"size": "64"}).size == 64
    assert catalogue.parse_parameters(xor, {"learning_rate": "0.5"}).learning_rate == 0.5
    compiled = matmul.variants()["pytorch/compile"]
    assert catalogue.parse_options(compiled, {"fullgraph": "true"}).model_dump()["fullgraph"] is True


@pytest.mark.parametrize("value", ["nan", "inf", "-1", "0"])
def test_invalid_numbers_are_refused(value: str) -> None:
    with pytest.raises(ValidationError):
        catalogue.parse_parameters(catalogue.find("xor"), {"learning_rate": value})


def test_a_run_that_can_be_run_has_no_problems() -> None:
    good = run(
        workload={"name": "matmul-chain", "parameters": {"length": "10", "scaling": "none"}},
        variants=[
            {"use": "pytorch/eager"},
            {"use": "pytorch/compile", "options": {"mode": "max-autotune", "dynamic": "false"}},
            {"use": "jax/scan"},
        ],
        sweep=[{"name": "size", "values": [16, "32"]}],
    )
    assert check_run(good) == ()


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        (
            {"workload": {"name": "matmul"}},
            "spec.workload.name",
            'unknown workload "matmul"; did you mean matmul-chain?',
        ),
        (
            {"workload": {"name": "matmul-chain", "parameters": {"sizee": 5}}},
            "spec.workload.parameters.sizee",
            'unknown parameter "sizee"; did you mean size?',
        ),
        (
            {"workload": {"name": "matmul-chain", "parameters": {"size": 0}}},
            "spec.workload.parameters.size",
            "0 is too small: at least 1",
        ),
        (
            {"workload": {"name": "matmul-chain", "parameters": {"length": 10**6}}},
            "spec.workload.parameters.length",
            "1000000 is too large: at most 2000",
        ),
        (
            {"workload": {"name": "matmul-chain", "parameters": {"scaling": "normalised"}}},
            "spec.workload.parameters.scaling",
            'unknown value "normalised"; did you mean normalized?',
        ),
        (
            {"workload": {"name": "matmul-chain", "parameters": {"size": "big"}}},
            "spec.workload.parameters.size",
            '"big": input should be a valid integer, unable to parse string as an integer',
        ),
        (
            {"variants": [{"use": "jax/jit"}, {"use": "jaxx/jit"}]},
            "spec.variants[1].use",
            'jaxx/jit: unknown framework "jaxx"; did you mean jax?',
        ),
        (
            {"variants": [{"use": "pytorch/compiled"}]},
            "spec.variants[0].use",
            'pytorch/compiled: unknown mode "compiled"; did you mean compile?',
        ),
        (
            {"variants": [{"use": "jax"}]},
            "spec.variants[0].use",
            (
                "jax: a variant is a framework and a mode; matmul-chain offers jax/jit, jax/op-by-op, jax/scan, "
                "pytorch/eager, pytorch/compile, numpy/eager"
            ),
        ),
        (
            {"workload": {"name": "elementwise-fusion"}, "variants": [{"use": "jax/scan"}]},
            "spec.variants[0].use",
            f"elementwise-fusion cannot run as jax/scan; it offers {', '.join([*FOUR, 'numpy/eager'])}",
        ),
        (
            {"workload": {"name": "xor"}, "variants": [{"use": "pytorch/eager"}]},
            "spec.variants[0].use",
            f"xor cannot run as pytorch/eager; it offers {', '.join(XOR)}",
        ),
        (
            {
                "workload": {"name": "variable-length"},
                "variants": [{"use": "jax/jit"}],
                "measurement": {"protocol": "latency"},
            },
            "spec.measurement.protocol",
            "variable-length is measured by the protocol episode only",
        ),
        (
            {"variants": [{"use": "pytorch/compile", "options": {"mod": "default"}}]},
            "spec.variants[0].options.mod",
            'unknown option "mod"; did you mean mode?',
        ),
        (
            {"variants": [{"use": "pytorch/compile", "options": {"mode": "max-autotun"}}]},
            "spec.variants[0].options.mode",
            'unknown value "max-autotun"; did you mean max-autotune?',
        ),
        (
            {"variants": [{"use": "jax/jit", "options": {"fullgraph": "true"}}]},
            "spec.variants[0].options.fullgraph",
            "jax/jit takes no options",
        ),
        (
            {
                "workload": {"name": "xor"},
                "variants": [{"use": "pytorch/compile", "options": {"fullgraph": "true"}}],
            },
            "spec.variants[0].options.fullgraph",
            "pytorch/compile takes no options",
        ),
        (
            {"sweep": [{"name": "sise", "values": [1]}]},
            "spec.sweep[0].name",
            'unknown parameter "sise"; did you mean size?',
        ),
        (
            {"sweep": [{"name": "size", "values": [16, 32, 0]}]},
            "spec.sweep[0].values[2]",
            "0 is too small: at least 1",
        ),
    ],
)
def test_a_run_that_cannot_be_run_is_refused_with_the_remedy(spec: dict[str, Any], path: str, message: str) -> None:
    assert problems(**spec) == [(path, message)]


def test_all_problems_are_reported_at_once() -> None:
    found = problems(
        workload={"name": "matmul-chain", "parameters": {"size": 0, "depth": 1}},
        variants=[{"use": "jax/jitt"}, {"use": "torch/eager"}],
        sweep=[{"name": "length", "values": [0, 1, 10**9]}],
    )
    assert [path for path, _ in found] == [
        "spec.workload.parameters.size",
        "spec.workload.parameters.depth",
        "spec.variants[0].use",
        "spec.variants[1].use",
        "spec.sweep[0].values[0]",
        "spec.sweep[0].values[2]",
    ]


@pytest.fixture
def odd_workloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Workloads of a distribution that has just been installed."""
    install_odd_workloads(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    catalogue._entry_points.cache_clear()
    yield
    catalogue._entry_points.cache_clear()
    catalogue._find_in_packages.cache_clear()


@pytest.mark.usefixtures("odd_workloads")
def test_an_installed_distribution_adds_workloads() -> None:
    assert "choosy" in catalogue.names()
    assert catalogue.find("choosy").name == "choosy"


@pytest.mark.usefixtures("odd_workloads")
def test_parameters_that_contradict_each_other_are_refused_together() -> None:
    assert problems(workload={"name": "choosy", "parameters": {"low": 11}}) == [
        ("spec.workload.parameters", "low must not be above high"),
    ]


@pytest.mark.usefixtures("odd_workloads")
def test_swept_values_that_contradict_each_other_are_refused_with_the_case() -> None:
    sweep = [{"name": "low", "values": [1, 20]}, {"name": "high", "values": [10, 30]}]
    assert problems(workload={"name": "choosy"}, sweep=sweep) == [
        ("spec.sweep", "low = 20, high = 10: low must not be above high"),
    ]


@pytest.mark.parametrize(
    ("workload", "expectation", "path", "message"),
    [
        (
            "selu",
            {"observation": "compilation", "equals": "3"},
            "observation",
            'unknown observation "compilation"; did you mean compilations?',
        ),
        (
            "selu",
            {"metric": "speedup", "atLeast": "2"},
            "metric",
            (
                "selu is observed, not timed; expect an observation: calls, compilations, compilationsByCall, raised, "
                "raisedCalls, message, values"
            ),
        ),
        (
            "matmul-chain",
            {"observation": "compilations", "equals": "3"},
            "observation",
            "matmul-chain is timed (steady); expect a metric",
        ),
    ],
)
def test_only_observations_of_a_workload_can_be_expected(
    workload: str, expectation: dict[str, str], path: str, message: str
) -> None:
    found = problems(workload={"name": workload}, expectations=[{"variant": "jax/jit", **expectation}])
    assert found == [(f"spec.expectations[0].{path}", message)]


def test_observations_that_a_workload_names_can_be_expected() -> None:
    expectations = [{"observation": "values", "variant": "jax/jit", "equals": "1, 2"}]
    assert problems(workload={"name": "selu"}, expectations=expectations) == []


def test_a_problem_reads_as_kubectl_writes_it() -> None:
    assert str(Problem("spec.variants[1].use", "no")) == "spec.variants[1].use: no"
