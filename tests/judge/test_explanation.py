"""Test that a failed comparison says what its outputs show, and names types that differ between variants."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from accelbench import catalogue
from accelbench.catalogue import inputs, script
from accelbench.launch.record import ParityReading
from accelbench.validity import parity
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.reference import reference_for
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import save
from judge.launches import a_case, a_launch

BASELINE, VARIANT = "numpy/eager", "jax/jit"
FUNCTIONS = """
import numpy as np

def arrays(rng):
    return {"x": rng.integers(0, 100_000, 50), "z": np.round(rng.standard_normal((8, 20)), 1)}

def jax(x, z):
    raise AssertionError("the baseline alone says what is right")

def numpy(x, z):
    return {"product": x * x, "least": z.min(1), "most": z.max(1), "slope": (z > 0) * 1.0}
"""
Change = dict[str, NDArray[Any]]


@pytest.fixture
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    path = tmp_path / "several.py"
    path.write_text(FUNCTIONS)
    monkeypatch.setenv(script.SCRIPT_VARIABLE, str(path))
    return a_case(BASELINE, VARIANT).model_copy(update={"workload": "several", "parameters": {}})


def reading_of(case: Any, directory: Path, changed: Change, types: dict[str, str] | None = None) -> ParityReading:
    """Return the reading of a variant's outputs, which are right but for `changed`."""
    right = reference_for(case, 2, directory).values
    save(directory / "outputs.npz", {**right, **changed})
    launches = (
        a_launch(BASELINE, facts={"parityUnits": 2, "outputTypes": {"product": "int64"}}),
        a_launch(VARIANT, facts={"parityUnits": 2, "outputTypes": types or {}}),
    )
    request = JudgeRequest(
        case=case, launches=launches, outputs={f"1/{VARIANT}": str(directory)}, directory=str(directory)
    )
    return read_parity(request)[f"1/{VARIANT}"]


def test_an_overflow_is_named_with_the_types_of_both_sides(case: Any, tmp_path: Path) -> None:
    product = reference_for(case, 2, tmp_path).values["product"]
    found = reading_of(case, tmp_path, {"product": product.astype(np.int32)}, {"product": "int32"})
    assert found.diagnosis.startswith(
        "product is int64 in numpy/eager and int32 in jax/jit, and it overflows 32 bits: every error is a multiple of"
    )
    finding = parity.CHECK.evaluate(case, a_launch(parity=found))
    assert (finding.outcome, found.diagnosis in finding.reading) == ("failed", True)


def test_exchanged_outputs_are_named(case: Any, tmp_path: Path) -> None:
    right = reference_for(case, 2, tmp_path).values
    found = reading_of(case, tmp_path, {"least": right["most"], "most": right["least"]})
    assert found.diagnosis == "least and most are exchanged"


def test_an_error_at_a_kink_is_explained_by_the_inputs(case: Any, tmp_path: Path) -> None:
    workload = catalogue.find(case.workload)
    z = inputs.generate(workload, workload.Parameters(), case.measurement.seed).batches[0]["z"]
    found = reading_of(case, tmp_path, {"slope": (z >= 0) * 1.0})
    assert found.diagnosis.startswith("it differs only where z is exactly 0, in")


def test_a_wrong_shape_is_explained(case: Any, tmp_path: Path) -> None:
    most = reference_for(case, 2, tmp_path).values["most"]
    found = reading_of(case, tmp_path, {"most": most[:, None]})
    assert "reshape or squeeze it to (8,)" in found.diagnosis


def test_two_outputs_of_the_same_wrong_shape_are_explained(case: Any, tmp_path: Path) -> None:
    right = reference_for(case, 2, tmp_path).values
    found = reading_of(case, tmp_path, {"least": right["least"][:-1], "most": right["most"][:-1]})
    assert "agree, and the reference has 1 more along it" in found.diagnosis


def test_right_outputs_need_no_explanation(case: Any, tmp_path: Path) -> None:
    assert reading_of(case, tmp_path, {}, {"product": "int32"}).diagnosis == ""
