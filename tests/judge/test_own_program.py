"""Test that a baseline's own program is the reference of a workload without one."""

from pathlib import Path

import numpy as np
import pytest

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.launch.record import ParityReading
from accelbench.validity import depends_on_inputs, parity
from accelbench.validity.certificate import certify
from accelbench.validity.evidence import Evidence
from accelbench_runner.judge.own_program import OwnProgram
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.reference import reference_for
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import FORMULA, UNSEEN, as_real
from judge.launches import a_case, a_failure, a_launch
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


def reading_of(case: object, directory: Path, outputs: np.ndarray) -> ParityReading:
    np.savez(directory / "outputs.npz", y=outputs)
    request = JudgeRequest(
        case=case,
        launches=(a_launch(facts={"parityUnits": 2}),),
        outputs={"1/jax/jit": str(directory)},
        directory=str(directory),
    )
    return read_parity(request)["1/jax/jit"]


def test_the_baseline_in_float64_is_the_reference(case: object, tmp_path: Path) -> None:
    bells = catalogue.find("bells")
    x = inputs.generate(bells, bells.Parameters(), 0).batches[0]["x"].astype(np.float32).astype(np.float64)
    assert reference_for(case, 2, tmp_path).own_program == BASELINE
    np.testing.assert_array_equal(reference_for(case, 2, tmp_path).values["y"], 1 / (1 + x * x))


def test_a_variant_that_agrees_passes_and_the_certificate_names_the_reference(case: object, tmp_path: Path) -> None:
    right = reference_for(case, 2, tmp_path).values["y"].astype(np.float32)
    found = reading_of(case, tmp_path, right)
    finding = parity.CHECK.evaluate(case, a_launch(parity=found))
    assert finding.outcome == "passed"
    assert finding.reading.endswith("; the reference is numpy/eager's own program in float64 on the CPU")


def test_a_variant_that_differs_fails(case: object, tmp_path: Path) -> None:
    wrong = reference_for(case, 2, tmp_path).values["y"] + 0.01
    assert parity.CHECK.evaluate(case, a_launch(parity=reading_of(case, tmp_path, wrong))).outcome == "failed"


@pytest.mark.parametrize("use", ["numpy/eager"])
@pytest.mark.parametrize(
    ("workload", "parameters"), [("matmul-chain", {"size": 8, "length": 4}), ("elementwise-fusion", {})]
)
def test_the_program_of_a_baseline_gives_the_numbers_of_the_reference(
    use: str, workload: str, parameters: dict[str, int]
) -> None:
    found = catalogue.find(workload)
    parsed = catalogue.parse_parameters(found, parameters)
    arrays = inputs.generate(found, parsed, 0)
    case = a_case(use, VARIANT).model_copy(update={"workload": workload, "parameters": parameters})
    right = as_real(found.reference(parsed, arrays, 8))
    own = as_real(OwnProgram(case, found, parsed).exact(arrays, 8))
    assert own.keys() == right.keys()
    for name, value in right.items():
        np.testing.assert_allclose(own[name], value, rtol=1e-12)


def test_a_baseline_that_does_not_run_in_float64_is_reported_with_the_remedy(case: object, tmp_path: Path) -> None:
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", "{}[x.dtype.name]"))
    found = reading_of(case, tmp_path, np.ones(64))
    assert found.detail == (
        "numpy/eager's own program is the reference, and it fails in float64 (write a reference() in NumPy, or make "
        "arrays with dtype=x.dtype, and modules with .to(x.dtype)): KeyError: 'float64' (bells.py, line 9)"
    )
    assert found.failed_reference == BASELINE


def test_a_baseline_that_draws_random_numbers_is_reported_as_such(case: object, tmp_path: Path) -> None:
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", "x * __import__('numpy').random.random()"))
    found = reading_of(case, tmp_path, np.ones(64))
    assert found.detail.startswith(
        "numpy/eager's own program is the reference, and y differs between two runs on the same inputs: "
    )
    assert "the outputs are random" in found.detail
    assert "take the mask, the noise or the state as an array" in found.detail


IMPURE = {
    "a result kept by shape": ("_kept.setdefault(x.shape, 1 / (1 + x * x))", "_kept = {}"),
    "another result after 20 calls": (
        "1 / (1 + x * x) + 1e-3 * (next(_calls) > 20)",
        "_calls = __import__('itertools').count()",
    ),
}


@pytest.mark.parametrize(("result", "globals_"), IMPURE.values(), ids=IMPURE)
def test_only_the_baseline_fails_if_its_outputs_depend_on_earlier_calls(
    case: object, tmp_path: Path, result: str, globals_: str
) -> None:
    (tmp_path / "bells.py").write_text(f"{globals_}\n{FUNCTIONS.replace('1 / (1 + x * x)', result)}")
    found = reading_of(case, tmp_path, np.ones(64))
    assert (found.failed_reference, found.formula.failed_reference) == (BASELINE, BASELINE)
    assert "y depends on earlier calls" in found.detail
    launches = tuple(a_launch(variant, parity=found) for variant in (BASELINE, VARIANT))
    checks = certify(Evidence(case=case, launches=launches)).checks
    assert [check.variant for check in checks if check.outcome == "failed"] == [BASELINE]


def test_a_baseline_may_keep_values_that_depend_on_no_input(case: object, tmp_path: Path) -> None:
    kept = "_kept.setdefault('one', 1) / (_kept.setdefault(len(x), 1) + x * x)"
    (tmp_path / "bells.py").write_text(f"_kept = {{}}\n{FUNCTIONS.replace('1 / (1 + x * x)', kept)}")
    assert reference_for(case, 2, tmp_path).own_program == BASELINE


def test_no_other_variant_is_blamed_for_a_baseline_that_refuses_unseen_inputs(case: object, tmp_path: Path) -> None:
    """The baseline's own program refuses them in float64, and its launch did not."""
    only_seen = "1 / (1 + x * x) if abs(x[0] - 0.1257) < 1e-3 else x.nothing"
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", only_seen))
    right = reference_for(case, 2, tmp_path).values["y"]
    for name in (FORMULA, UNSEEN):
        np.savez(tmp_path / name, y=right)
    found = reading_of(case, tmp_path, right.astype(np.float32))
    found = found.model_copy(update={"formula": found})
    outcomes = {
        variant: depends_on_inputs.CHECK.evaluate(case, a_launch(variant, parity=found)).outcome
        for variant in (BASELINE, VARIANT)
    }
    assert outcomes == {BASELINE: "failed", VARIANT: "untested"}


def test_without_a_reference_the_baseline_fails_and_the_others_are_untested(case: object, tmp_path: Path) -> None:
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", "x.nothing"))
    found = reading_of(case, tmp_path, np.ones(64))
    launches = tuple(a_launch(variant, parity=found) for variant in (BASELINE, VARIANT))
    checks = {(check.name, check.variant): check for check in certify(Evidence(case=case, launches=launches)).checks}
    assert checks["parity", BASELINE].outcome == "failed"
    assert checks["parity", VARIANT].outcome == "untested"
    assert "AttributeError" in checks["parity", VARIANT].reading
    assert "is unknown, because there is no reference" in checks["depends-on-inputs", None].reading


def test_a_baseline_that_returns_a_narrow_type_is_no_reference(case: object, tmp_path: Path) -> None:
    np.savez(tmp_path / "outputs.npz", y=np.ones(64))
    request = JudgeRequest(
        case=case,
        launches=(
            a_launch(BASELINE, facts={"outputTypes": {"y": "float16"}}),
            a_launch(facts={"parityUnits": 2, "outputTypes": {"y": "float32"}}),
        ),
        outputs={"1/jax/jit": str(tmp_path)},
        directory=str(tmp_path),
    )
    found = read_parity(request)["1/jax/jit"]
    assert found.failed_reference == BASELINE
    assert "it returns y as float16, although float32 is requested" in found.detail


def test_the_message_about_a_baseline_whose_launch_failed_does_not_mention_float64(
    case: object, tmp_path: Path
) -> None:
    (tmp_path / "bells.py").write_text(FUNCTIONS.replace("1 / (1 + x * x)", "x.nothing"))
    np.savez(tmp_path / "outputs.npz", y=np.ones(64))
    request = JudgeRequest(
        case=case,
        launches=(a_failure(BASELINE, 1, "Raised"), a_launch(facts={"parityUnits": 2})),
        outputs={"1/jax/jit": str(tmp_path)},
        directory=str(tmp_path),
    )
    found = read_parity(request)["1/jax/jit"]
    assert found.failed_reference == BASELINE
    assert found.detail.startswith("numpy/eager's own program is the reference, and it failed: AttributeError")


CODE = """
from accelbench.api.case import Case
from accelbench_runner.judge.own_program import OwnProgram
case = Case.model_validate_json({case!r})
workload = catalogue.find(case.workload)
parameters = catalogue.parse_parameters(workload, case.parameters)
arrays = inputs.generate(workload, parameters, 0)
own = OwnProgram(case, workload, parameters).exact(arrays, 8)
right = workload.reference(parameters, arrays, 8)
print(json.dumps([sorted(own), max(float(abs(own[name] - right[name]).max()) for name in right)]))
"""


@pytest.mark.parametrize("use", ["jax/jit", "jax/scan", "pytorch/eager", "pytorch/compile"])
def test_the_baseline_runs_in_float64_in_jax_and_pytorch_without_compiling(use: str) -> None:
    case = a_case(use, "numpy/eager")
    names, apart = inside(use.partition("/")[0], CODE.format(case=case.to_json()))
    assert names == ["x"]
    assert apart < 1e-12
