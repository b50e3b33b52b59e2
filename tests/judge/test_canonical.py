"""Test outputs that are right in several ways: they are compared in the form that canonical() gives them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from accelbench import catalogue
from accelbench.api.case import Case, Precision
from accelbench.catalogue import script
from accelbench.launch.record import CANONICAL, MISMATCH, ParityReading
from accelbench.machine import fingerprint
from accelbench.validity import depends_on_inputs, parity
from accelbench_runner.judge.parity import read_parity
from accelbench_runner.judge.reference_program import start_arrays
from accelbench_runner.judge_protocol import JudgeRequest
from accelbench_runner.outputs import FORMULA, UNSEEN, save
from judge.launches import a_case, a_launch

Array = NDArray[Any]
Outputs = dict[str, Array]
VARIANT = "jax/jit"
UNSEEN_SEED = 5

AXES = """
import numpy as np

def arrays(rng, rows: int = 200):
    return {"x": rng.standard_normal((rows, 6)) * [6, 5, 4, 3, 2, 1]}

def numpy(x):
    return np.linalg.eigh(x.T @ x)

reference = numpy
"""
FIX_SIGNS = """
def canonical(y0, y1):
    return y0, y1 * np.sign(y1[np.abs(y1).argmax(0), np.arange(6)])
"""
CLUSTERS = """
import numpy as np

def arrays(rng):
    start = 3 * np.eye(3)[:, :2]
    return {"x": rng.standard_normal((90, 2)) * 0.3 + start[np.arange(90) % 3], "start": start}

def numpy(x, start):
    centres = start
    for _ in range(4):
        labels = ((x[:, None] - centres) ** 2).sum(-1).argmin(1)
        centres = np.stack([x[labels == label].mean(0) for label in range(3)])
    return {"labels": labels, "centres": centres}

reference = numpy
"""
NUMBER_BY_APPEARANCE = """
def canonical(labels, centres):
    _, first = np.unique(labels, return_index=True)
    order = labels[np.sort(first)]
    return {"labels": np.argsort(order)[labels], "centres": centres[order]}
"""
PHASES = """
import numpy as np

def arrays(rng):
    return {"a": rng.standard_normal((5, 5)) + 1j * rng.standard_normal((5, 5)) + np.diag(np.arange(5) * 10)}

def numpy(a):
    return np.linalg.eigh(a + a.conj().T)[1]

reference = numpy

def canonical(vectors, a):
    largest = vectors[np.abs(vectors).argmax(0), np.arange(len(a))]
    return vectors * np.abs(largest) / largest
"""
PADDED = """
import numpy as np

def arrays(rng):
    return {"x": rng.standard_normal((40, 8)), "keep": np.arange(40) < 30}

def numpy(x, keep):
    return x * 2

reference = numpy

def canonical(y, keep):
    return np.where(keep[:, None], y, 0)
"""
Judge = Callable[..., ParityReading]


def judge_of(directory: Path, patch: pytest.MonkeyPatch) -> Judge:
    """Return a function that judges the outputs of a launch of a script, on the case's inputs and on unseen ones."""

    def judge(
        text: str, change: Callable[[Outputs], Outputs] = dict, *, precision: Precision = "float32"
    ) -> ParityReading:
        path = directory / str(len(list(directory.iterdir()))) / "several.py"
        path.parent.mkdir()
        path.write_text(text)
        patch.setenv(script.SCRIPT_VARIABLE, str(path))
        case = a_case("numpy/eager", VARIANT, precision=precision)
        case = case.model_copy(update={"workload": "several", "parameters": {}})
        exact = case.model_copy(update={"measurement": case.measurement.model_copy(update={"precision": "float64"})})
        save(path.parent / "outputs.npz", change(outputs_of(case, None, narrow=precision == "float32")))
        save(path.parent / UNSEEN, change(outputs_of(case, UNSEEN_SEED, narrow=precision == "float32")))
        save(path.parent / FORMULA, change(outputs_of(exact, None, narrow=False)))
        request = JudgeRequest(
            case=case,
            launches=(a_launch(VARIANT, facts={"parityUnits": 2}, parity=None),),
            outputs={f"1/{VARIANT}": str(path.parent)},
            directory=str(path.parent),
            unseen_seed=UNSEEN_SEED,
        )
        reading = read_parity(request)[f"1/{VARIANT}"]
        assert read_parity(request)[f"1/{VARIANT}"] == reading  # as in a later round, which reads the reference again
        return reading

    return judge


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Judge:
    return judge_of(tmp_path, monkeypatch)


def outputs_of(case: Case, seed: int | None, *, narrow: bool) -> Outputs:
    """Return what the script's function computes, in float32 or float64."""
    workload = catalogue.find(case.workload)
    parameters = workload.Parameters()
    start = start_arrays(case, workload, parameters, seed)
    if narrow:
        types = {"f": np.float32, "c": np.complex64}
        batch = {name: np.asarray(a, types.get(a.dtype.kind, a.dtype)) for name, a in start.batches[0].items()}
        start = type(start)(state=start.state, batches=(batch,))
    return dict(workload.reference(parameters, start, 2))


def outcomes(reading: ParityReading) -> tuple[str, str]:
    """Return the outcomes of parity and of depends-on-inputs."""
    launch = a_launch(VARIANT, parity=reading)
    case = a_case("numpy/eager", VARIANT)
    return parity.CHECK.evaluate(case, launch).outcome, depends_on_inputs.CHECK.evaluate(case, launch).outcome


def turn_axes(outputs: Outputs) -> Outputs:
    return {**outputs, "y1": outputs["y1"] * np.array([1, -1, -1, 1, 1, -1])}


def name_clusters_otherwise(outputs: Outputs) -> Outputs:
    names = np.array([2, 0, 1])
    return {"labels": names[outputs["labels"]], "centres": outputs["centres"][np.argsort(names)]}


def turn_phases(outputs: Outputs) -> Outputs:
    return {"y": (outputs["y"] * np.exp(1j * np.arange(5))).astype(outputs["y"].dtype)}


def spoil_padding(outputs: Outputs) -> Outputs:
    return {"y": np.where(np.arange(40)[:, None] < 30, outputs["y"], np.float32(7))}


def one_wrong(change: Callable[[Outputs], Outputs], name: str, factor: float = 1.01) -> Callable[[Outputs], Outputs]:
    """Return the change with one wrong element more."""

    def changed(outputs: Outputs) -> Outputs:
        wrong = {key: array.copy() for key, array in change(outputs).items()}
        array = wrong[name]
        array.flat[5] = (array.flat[5] + 1) % 3 if array.dtype.kind in "iu" else array.flat[5] * factor
        return wrong

    return changed


FORMS = {
    "signs": (AXES + FIX_SIGNS, turn_axes, "y1"),
    "labels": (CLUSTERS + NUMBER_BY_APPEARANCE, name_clusters_otherwise, "labels"),
    "centres": (CLUSTERS + NUMBER_BY_APPEARANCE, name_clusters_otherwise, "centres"),
    "phases": (PHASES, turn_phases, "y"),
    "padding": (PADDED, spoil_padding, "y"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_outputs_may_differ_only_in_what_the_form_leaves_free(form: str, precision: Precision, judge: Judge) -> None:
    text, change, name = FORMS[form]
    right = judge(text, change, precision=precision)
    assert outcomes(right) == ("passed", "passed"), right
    assert right.formula is not None
    assert right.formula.worst_ratio <= 1
    assert right.canonical.endswith("canonical()")
    wrong = judge(text, one_wrong(change, name), precision=precision)
    assert outcomes(wrong)[0] == "failed"
    assert wrong.formula is not None
    assert wrong.formula.worst_ratio > 64
    assert wrong.unseen is not None
    assert wrong.unseen.reading.worst_ratio > 16


@settings(max_examples=20, deadline=None)
@given(
    signs=st.lists(st.sampled_from([-1, 1]), min_size=6, max_size=6),
    place=st.one_of(st.none(), st.integers(0, 35)),
)
def test_any_signs_pass_and_any_wrong_element_fails(
    signs: list[int], place: int | None, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("axes")
    with pytest.MonkeyPatch.context() as patch:
        judge = judge_of(directory, patch)

        def change(outputs: Outputs) -> Outputs:
            vectors = outputs["y1"] * np.array(signs)
            if place is not None:
                vectors.flat[place] += 0.01
            return {**outputs, "y1": vectors}

        assert (judge(AXES + FIX_SIGNS, change).worst_ratio > 1) is (place is not None)


def test_without_a_canonical_form_the_reading_names_the_remedy(judge: Judge) -> None:
    for text, change in ((AXES, turn_axes), (CLUSTERS, name_clusters_otherwise)):
        reading = judge(text, change)
        assert outcomes(reading)[0] == "failed"
        assert "canonical()" in reading.diagnosis


CONSTANT = "\ndef canonical(y0, y1):\n    return y0 * 0, y1 * 0\n"
FROM_INPUTS = "\ndef canonical(y0, y1, x):\n    return {'axes': np.linalg.eigh(x.T @ x)[1]}\n"
VALUES_ALONE = "\ndef canonical(y0, y1):\n    return y0\n"
DIGITS = "\ndef canonical(y0, y1):\n    return np.round(y0), np.round(np.abs(y1), 2)\n"
WITHOUT_NAN = "\ndef canonical(y0, y1):\n    return np.nan_to_num(y0), np.abs(np.nan_to_num(y1))\n"


@pytest.mark.parametrize(
    ("canonical", "hidden"),
    [(CONSTANT, ("y0 and y1")), (FROM_INPUTS, "y0 and y1"), (VALUES_ALONE, "y1")],
    ids=["constant", "from inputs", "one output"],
)
def test_a_form_that_does_not_depend_on_an_output_leaves_parity_untested(
    canonical: str, hidden: str, judge: Judge
) -> None:
    for change in (dict, one_wrong(turn_axes, "y1", 100)):
        reading = judge(AXES + canonical, change)
        assert outcomes(reading) == ("untested", "untested")
        assert f"gives the same for other numbers in {hidden}, so" in reading.detail


def test_parity_detects_errors_that_the_form_preserves(judge: Judge) -> None:
    exact, rounded = (judge(AXES + form).sees_in_half for form in (FIX_SIGNS, DIGITS))
    assert exact is not None
    assert rounded is not None
    assert exact < 1e-4
    assert rounded > 1e-3


def test_errors_of_single_numbers_that_the_form_hides_are_reported(judge: Judge) -> None:
    assert judge(AXES + FIX_SIGNS).hidden_errors == ""
    reading = judge(PADDED)
    assert reading.hidden_errors.endswith(" of 8 single errors in y")
    assert reading.hidden_errors in parity.CHECK.evaluate(a_case(), a_launch(VARIANT, parity=reading)).reading


def test_the_form_hides_no_nan(judge: Judge) -> None:
    reading = judge(AXES + WITHOUT_NAN, lambda outputs: {**outputs, "y1": np.full_like(outputs["y1"], np.nan)})
    assert not reading.finite
    assert judge(AXES + WITHOUT_NAN, turn_axes).worst_ratio <= 1


@pytest.mark.parametrize(
    ("canonical", "message"),
    [
        ("def canonical(y0, y1):\n    return y1 / nothing\n", "raised NameError: name 'nothing' is not defined"),
        ("def canonical(y0, y1):\n    return None\n", "returned None; it has to return an array"),
        ("def canonical(y0, y1):\n    return 'signs'\n", "returned a str; it has to return arrays"),
        ("def canonical(values):\n    return values\n", "is given the arrays y0, y1: "),
        ("def canonical(y0, y1, z):\n    return y0\n", "is given the arrays y0, y1: missing a required argument: 'z'"),
        ("def canonical(y0, y1, x):\n    x *= 2\n    return y0\n", "ValueError: output array is read-only"),
    ],
)
def test_a_canonical_form_that_fails_on_the_reference_is_blamed_itself(
    canonical: str, message: str, judge: Judge
) -> None:
    reading = judge(f"{AXES}\n{canonical}")
    assert reading.failed_reference == CANONICAL
    assert f"several.py, line 12: {CANONICAL}" in reading.detail
    assert message in reading.detail
    assert outcomes(reading) == ("failed", "untested")


def test_outputs_without_a_canonical_form_fail_their_variant_alone(judge: Judge) -> None:
    picky = AXES + FIX_SIGNS.replace("    return", "    if y0[0] > 0: raise ValueError('not ascending')\n    return")
    picky = picky.replace("y0[0] > 0", "y0[0] > y0[1]")
    reading = judge(picky, lambda outputs: {**outputs, "y0": outputs["y0"][::-1].copy()})
    assert (reading.worst_ratio, reading.failed_reference) == (MISMATCH, "")
    assert "its outputs have no canonical form" in reading.detail
    assert "ValueError: not ascending (several.py, line 13)" in reading.detail


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda outputs: {"y0": outputs["y0"]}, "it returns no y1, which the reference has"),
        (lambda outputs: {**outputs, "y1": outputs["y1"][:, :5]}, "y1 has shape (6, 5), the reference (6, 6)"),
    ],
)
def test_outputs_of_another_layout_are_described_as_they_were_returned(
    change: Callable[[Outputs], Outputs], detail: str, judge: Judge
) -> None:
    reading = judge(AXES + FIX_SIGNS, change)
    assert (reading.worst_ratio, reading.detail) == (MISMATCH, detail)


def test_a_form_whose_shape_depends_on_the_outputs_shows_both_shapes(judge: Judge) -> None:
    distinct = "\ndef canonical(labels, centres):\n    return {'labels': np.unique(labels), 'centres': centres}\n"
    reading = judge(CLUSTERS + distinct, lambda outputs: {**outputs, "labels": outputs["labels"] * 0})
    assert (reading.worst_ratio, reading.detail) == (
        MISMATCH,
        "after canonical(): labels has shape (1,), the reference (3,)",
    )


def test_a_step_without_effect_is_detected_with_a_form_too(judge: Judge) -> None:
    still = """
from accelbench.workload import Arrays, Workload
import numpy as np

class Still(Workload):
    modes = {"numpy": ("eager",)}

    def arrays(self, parameters, rng):
        return Arrays(state={"v": rng.standard_normal(8)})

    def reference(self, parameters, arrays, units):
        return {"v": -arrays.state["v"]}

    def canonical(self, parameters, arrays, outputs):
        return {"v": outputs["v"] * np.sign(outputs["v"][0])}

    def numpy(self, parameters, arrays, tools): ...
"""
    for text, compared in ((still, False), (still.replace("-arrays", "2 * arrays"), True)):
        reading = judge(text)
        assert (reading.worst_ratio <= 1, reading.compared) == (True, compared)


def test_another_form_is_another_source(tmp_path: Path) -> None:
    digests = set()
    for number, text in enumerate((AXES, AXES + FIX_SIGNS, AXES + CONSTANT)):
        path = tmp_path / str(number) / "several.py"
        path.parent.mkdir()
        path.write_text(text)
        with script.use(path):
            digests.add(fingerprint.of_source(type(catalogue.find("several")))["workloadSource"])
    assert len(digests) == 3
