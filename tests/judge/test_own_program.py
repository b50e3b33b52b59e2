"""Test that a baseline's own program is the reference of a workload without one."""

from pathlib import Path

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.launch.record import ParityReading
from accelbench.validity import parity
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.reference import OwnProgram, reference_for
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import as_real
from judge.launches import a_case, a_launch
from launch.inside import inside

BASELINE, VARIANT = "numpy/eager", "jax/jit"
FUNCTIONS = """
def arrays(rng):
    return {"x": rng.standard_normal(64)}

def jax(x):
    raise AssertionError("the baseline alone says what is right")

def numpy(x):
    return 1 / (1 + x * x)
"""


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    """Of functions without a reference, with NumPy as baseline."""
    path = tmp_path / "bells.py"
    path.write_text(FUNCTIONS)
    monkeypatch.setenv(script.SCRIPT_VARIABLE, str(path))
    return a_case(BASELINE, VARIANT).model_copy(update={"workload": "bells", "parameters": {}})


def asked(case: object, directory: Path, outputs: np.ndarray) -> ParityReading:
    np.savez(directory / "outputs.npz", y=outputs)
    request = JudgeRequest(
        case=case,
        launches=(a_launch(facts={"parityUnits": 2}),),
        outputs={"1/jax/jit": str(directory)},
        directory=str(directory),
    )
    return read_parity(request)["1/jax/jit"]


def test_what_the_baseline_computes_in_float64_is_right(case: object, tmp_path: Path) -> None:
    bells = catalogue.find("bells")
    x = inputs.generate(bells, bells.Parameters(), 0).batches[0]["x"].astype(np.float32).astype(np.float64)
    assert reference_for(case, 2, tmp_path).own_program == BASELINE
    np.testing.assert_array_equal(reference_for(case, 2, tmp_path).values["y"], 1 / (1 + x * x))


def test_a_variant_that_agrees_passes_and_the_certificate_says_with_what(case: object, tmp_path: Path) -> None:
    right = reference_for(case, 2, tmp_path).values["y"].astype(np.float32)
    found = asked(case, tmp_path, right)
    finding = parity.CHECK.evaluate(case, a_launch(parity=found))
    assert finding.outcome == "passed"
    assert finding.reading.endswith("; the reference is numpy/eager's own program in float64 on the CPU")


def test_a_variant_that_differs_fails(case: object, tmp_path: Path) -> None:
    wrong = reference_for(case, 2, tmp_path).values["y"] + 0.01
    assert parity.CHECK.evaluate(case, a_launch(parity=asked(case, tmp_path, wrong))).outcome == "failed"


@pytest.mark.parametrize("use", ["numpy/eager"])
@pytest.mark.parametrize(
    ("workload", "parameters"), [("matmul-chain", {"size": 8, "length": 4}), ("elementwise-fusion", {})]
)
def test_a_baselines_own_program_gives_what_the_reference_gives(
    use: str, workload: str, parameters: dict[str, int]
) -> None:
    found = catalogue.find(workload)
    parsed = catalogue.parse_parameters(found, parameters)
    arrays = inputs.generate(found, parsed, 0)
    case = a_case(use, VARIANT).model_copy(update={"workload": workload, "parameters": parameters})
    right = as_real(found.reference(parsed, arrays, 8))
    own = as_real(OwnProgram(case, found, parsed).run(arrays, 8))
    assert own.keys() == right.keys()
    for name, value in right.items():
        np.testing.assert_allclose(own[name], value, rtol=1e-12)


def test_a_baseline_that_does_not_run_in_float64_says_what_to_write(case: object, tmp_path: Path) -> None:
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", "{}[x.dtype.name]"))
    assert asked(case, tmp_path, np.ones(64)).detail == (
        "the reference cannot be computed: numpy/eager's own program fails in float64 (write a reference() in NumPy, "
        "or make arrays with dtype=x.dtype): KeyError: 'float64' (bells.py, line 9)"
    )


def test_a_baseline_that_computes_something_else_in_float64_says_what_to_write(case: object, tmp_path: Path) -> None:
    np.savez(tmp_path / "outputs.npz", y=np.zeros(64))
    request = JudgeRequest(
        case=case,
        launches=(a_launch(variant=BASELINE, facts={"parityUnits": 2}),),
        outputs={f"1/{BASELINE}": str(tmp_path)},
        directory=str(tmp_path),
    )
    detail = read_parity(request)[f"1/{BASELINE}"].detail
    assert detail.startswith("in float64 it computes something else: write a reference() in NumPy, or make arrays with")


CODE = """
from accelbench.api.case import Case
from accelbench_runner.judge.reference import OwnProgram
case = Case.model_validate_json({case!r})
workload = catalogue.find(case.workload)
parameters = catalogue.parse_parameters(workload, case.parameters)
arrays = inputs.generate(workload, parameters, 0)
own = OwnProgram(case, workload, parameters).run(arrays, 8)
right = workload.reference(parameters, arrays, 8)
print(json.dumps([sorted(own), max(float(abs(own[name] - right[name]).max()) for name in right)]))
"""


@pytest.mark.parametrize("use", ["jax/jit", "jax/scan", "pytorch/eager", "pytorch/compile"])
def test_so_it_does_in_jax_and_pytorch_without_compiling(use: str) -> None:
    case = a_case(use, "numpy/eager")
    names, apart = inside(use.partition("/")[0], CODE.format(case=case.to_json()))
    assert names == ["x"]
    assert apart < 1e-12
