"""Test the judge on outputs that are missing, unreadable, in agreement or not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from accelbench.launch.record import MISMATCH, REFERENCE, ParityReading
from accelbench.workload import NamedArrays
from accelbench_runner.judge.assessment import judge
from accelbench_runner.judge.expected import Expected
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.reference import Reference, reference_for
from accelbench_runner.judge_protocol import JudgeRequest
from judge.launches import a_case, a_launch


def reading_in(directory: Path, **changes: Any) -> ParityReading:
    case = a_case()
    request = JudgeRequest(
        case=case.model_copy(update=changes),
        launches=(a_launch(facts={"parityUnits": 4}),),
        outputs={"1/jax/jit": str(directory)},
        directory=str(directory),
    )
    return read_parity(request)["1/jax/jit"]


def test_the_judge_reads_what_a_launch_wrote(tmp_path: Path) -> None:
    np.savez(tmp_path / "outputs.npz", **reference_for(a_case(), 4, tmp_path).values)
    found = reading_in(tmp_path)
    assert (found.units, found.worst_ratio, found.worst_array) == (4, 0.0, "x")


def test_outputs_that_are_missing_fail(tmp_path: Path) -> None:
    found = reading_in(tmp_path)
    assert found.worst_ratio == MISMATCH
    assert found.detail.startswith("its outputs cannot be read: FileNotFoundError")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04garbage", b"\x93NUMPY"])
def test_outputs_that_are_garbage_fail(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "outputs.npz").write_bytes(content)
    assert reading_in(tmp_path).detail.startswith("its outputs cannot be read: ")


def test_outputs_are_never_unpickled(tmp_path: Path) -> None:
    np.savez(tmp_path / "outputs.npz", x=np.array([{}], dtype=object))
    assert "allow_pickle" in reading_in(tmp_path).detail


def test_the_reading_holds_the_exception_of_the_reference(tmp_path: Path) -> None:
    np.savez(tmp_path / "outputs.npz", x=np.zeros(1))
    found = reading_in(tmp_path, parameters={"size": "many"})
    assert found.worst_ratio == MISMATCH
    assert found.detail.startswith("reference() cannot be used: ")
    assert found.failed_reference == REFERENCE


@pytest.mark.parametrize(("field", "outcome"), [("reference_delay", "untested"), ("reference_problem", "failed")])
def test_a_late_reference_does_not_fail_parity_but_one_that_ends_the_judge_does(
    tmp_path: Path, field: str, outcome: str
) -> None:
    np.savez(tmp_path / "outputs.npz", x=np.zeros(1))
    request = JudgeRequest(
        case=a_case(),
        launches=(a_launch(facts={"parityUnits": 4}),),
        outputs={"1/jax/jit": str(tmp_path)},
        directory=str(tmp_path),
        **{field: "the reason"},
    )
    [check] = [check for check in judge(request).certificate.checks if check.name == "parity"]
    assert check.outcome == outcome
    assert "the reason" in check.reading


def both_asked(directory: Path, eager: NamedArrays, jit: NamedArrays) -> list[str]:
    """Return the readings of the outputs of two variants."""
    for name, outputs in (("eager", eager), ("jit", jit)):
        (directory / name).mkdir()
        np.savez(directory / name / "outputs.npz", allow_pickle=False, **outputs)
    found = read_parity(
        JudgeRequest(
            case=a_case(),
            launches=tuple(a_launch(variant, facts={"parityUnits": 4}) for variant in ("pytorch/eager", "jax/jit")),
            outputs={"1/pytorch/eager": str(directory / "eager"), "1/jax/jit": str(directory / "jit")},
            directory=str(directory),
        )
    )
    return [reading.detail for reading in found.values()]


AGREE = "; both variants agree with each other and differ from the reference"


def test_variants_that_agree_against_the_reference_are_named(tmp_path: Path) -> None:
    right = reference_for(a_case(), 4, tmp_path).values["x"]
    other = {"x": right + 1}
    assert all(detail.endswith(AGREE) for detail in both_asked(tmp_path, other, {"x": right + 1 + 1e-9}))


def test_a_reference_that_amplifies_hides_no_agreement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = Expected(np.full((8, 8), 1e13), np.full((8, 8), 1e9), "float32")
    wild = Reference({"x": expected}, "float32")
    monkeypatch.setattr("accelbench_runner.judge.parity.reference_for", lambda *_, **__: wild)
    x = np.random.default_rng(0).standard_normal((8, 8))
    assert all(detail.endswith(AGREE) for detail in both_asked(tmp_path, {"x": x}, {"x": x * (1 + 1e-7)}))


def test_variants_agree_if_they_differ_no_more_than_perturbed_inputs_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = np.random.default_rng(0).standard_normal((8, 8))
    wrong = Reference({"x": Expected(x + 10, np.full((8, 8), 1e-4), "float32")}, "float32")
    monkeypatch.setattr("accelbench_runner.judge.parity.reference_for", lambda *_, **__: wrong)
    assert all(detail.endswith(AGREE) for detail in both_asked(tmp_path, {"x": x}, {"x": x + 1e-3}))


def test_variants_that_both_overflow_prove_nothing_against_the_reference(tmp_path: Path) -> None:
    assert not any("agree" in detail for detail in both_asked(tmp_path, *({"x": np.full((8, 8), np.inf)},) * 2))


def test_variants_that_agree_on_another_shape_are_named(tmp_path: Path) -> None:
    right = reference_for(a_case(), 4, tmp_path).values["x"]
    details = both_asked(tmp_path, {"x": right[:4]}, {"x": right[:4]})
    assert all(detail.startswith("x has shape (4, 8)") and detail.endswith(AGREE) for detail in details)


@pytest.mark.parametrize(("eager", "jit"), [(1.0, 2.0), (0.0, 1.0)], ids=["both wrong", "one wrong"])
def test_variants_that_differ_from_each_other_are_not_named_as_agreeing(
    tmp_path: Path, eager: float, jit: float
) -> None:
    right = reference_for(a_case(), 4, tmp_path).values["x"]
    assert not any("agree" in detail for detail in both_asked(tmp_path, {"x": right + eager}, {"x": right + jit}))
