"""Test what parity accepts and detects, with a chain of products in the policy's own arithmetic."""

import dataclasses
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import ref

import numpy as np
import pytest
from numpy.typing import NDArray

from accelbench.api.case import Precision
from accelbench.launch.record import MISMATCH, ParityReading
from accelbench.validity import depends_on_inputs, formula
from accelbench.workload import Arrays, NamedArrays
from accelbench_runner.judge.arithmetic import EPSILON, round_array, round_arrays
from accelbench_runner.judge.layout import read_outputs
from accelbench_runner.judge.parity import compare
from accelbench_runner.judge.reference import (
    FORMULA_RUNS,
    Reference,
    compute,
    counts_units,
    leaves_state_unchanged,
    reference_for,
)
from accelbench_runner.judge.reference_program import NumpyProgram
from accelbench_runner.outputs import as_real, save
from judge.launches import a_case

Array = NDArray[Any]
NARROW: tuple[Precision, ...] = ("float32", "bfloat16", "float16")


def arrays(size: int = 32) -> Arrays:
    rng = np.random.default_rng(1)
    weights, _ = np.linalg.qr(rng.standard_normal((size, size)))
    return Arrays(state={"x": rng.standard_normal((size, size)), "steps": np.array(0)}, batches=({"w": weights},))


def chain(data: Arrays, units: int) -> NamedArrays:
    x, w = data.state["x"], data.batches[0]["w"]
    for _ in range(units):
        x = x @ w
    return {"x": x, "steps": data.state["steps"] + units}


def in_precision(precision: Precision, units: int = 10, **changes: Callable[[Array], Array]) -> NamedArrays:
    """The chain as a variant computes it: products summed in float32, every result rounded to the policy's type."""
    data = arrays()
    x = changes.get("x", lambda array: array)(round_array(data.state["x"], precision))
    w = changes.get("w", lambda array: array)(round_array(data.batches[0]["w"], precision))
    product = changes.get("product", lambda array: array)
    for _ in range(units):
        x = round_array(product(x.astype(np.float32) @ w.astype(np.float32)).astype(np.float64), precision)
    return {"x": x, "steps": np.array(units)}


def a_reference(
    precision: Precision = "float32", units: int = 10, run: Any = chain, *, non_finite: bool = False
) -> Reference:
    expected = compute(NumpyProgram(run), round_arrays(arrays(), precision), units, precision)
    return Reference(expected=expected, precision=precision, non_finite=non_finite)


def reading(outputs: NamedArrays, precision: Precision = "float32", units: int = 10) -> ParityReading:
    return compare(outputs, a_reference(precision, units), units)


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize("units", [1, 10, 50])
def test_a_right_result_in_the_policys_arithmetic_passes_with_a_margin(precision: Precision, units: int) -> None:
    found = reading(in_precision(precision, units), precision, units)
    assert found.finite
    assert found.worst_ratio < 0.5


@pytest.mark.parametrize("end", [200, 400, 600, 800])
def test_a_sum_that_ends_one_term_early_fails_in_float64_although_moved_inputs_drop_that_term(end: int) -> None:
    start = Arrays(state={"time": np.arange(1000.0), "rate": np.random.default_rng(0).random(1000)})

    def up_to_the_end(data: Arrays, _units: int) -> NamedArrays:
        return {"dose": np.asarray((data.state["rate"] * (data.state["time"] <= end)).sum())}

    expected = compute(NumpyProgram(up_to_the_end), start, 1, "float64", FORMULA_RUNS)
    one_less = {"dose": np.asarray(start.state["rate"][:end].sum())}
    assert compare(one_less, Reference(expected=expected, precision="float64"), 1).worst_ratio > formula.MAXIMUM_RATIO


@pytest.mark.parametrize(("divisor", "compared"), [(1, False), (7, True)])
def test_other_truths_for_equal_whole_numbers_are_not_taken_for_rounding(divisor: int, *, compared: bool) -> None:
    points = np.rint(np.random.default_rng(0).normal(80, 8, (2, 400))) / divisor
    start = Arrays(state={"home": points[0], "away": points[1]})

    def unbeaten(data: Arrays, _units: int) -> NamedArrays:
        home, away = data.state["home"], data.state["away"]
        return {"unbeaten": np.asarray(home >= away), "margin": home - away}

    expected = compute(NumpyProgram(unbeaten), start, 1, "float64", FORMULA_RUNS)
    outputs = {"unbeaten": points[0] > points[1], "margin": (points[0] - points[1]) * (1 + 2.0**-52)}
    found = compare(outputs, Reference(expected=expected, precision="float64"), 1)
    assert (found.worst_ratio <= 1, found.compared) == (True, compared)


def change_one_weight(array: Array) -> Array:
    changed = array.copy()
    changed[3, 4] += 0.5
    return changed


@pytest.mark.parametrize("precision", NARROW)
@pytest.mark.parametrize(
    "changes",
    [
        {"w": np.transpose},
        {"w": change_one_weight},
        {"x": np.transpose},
        {"product": lambda array: array / math.sqrt(array.shape[0])},
        {"product": lambda array: array * 1.5},
        {"product": lambda array: array - array.mean(axis=0)},
    ],
    ids=["wrong axis", "wrong weight", "wrong input", "wrong scale", "slightly wrong scale", "wrong reduction"],
)
def test_a_wrong_result_fails_in_every_precision(precision: Precision, changes: dict[str, Any]) -> None:
    assert reading(in_precision(precision, **changes), precision).worst_ratio > 1


@pytest.mark.parametrize("narrow", ["tf32", "bfloat16", "float16"])
def test_a_narrower_type_does_not_pass_for_float32(narrow: Precision) -> None:
    wire: Precision = "float16" if narrow == "tf32" else narrow  # TF32 has float16's ten bits
    assert reading(in_precision(wire), "float32").worst_ratio > 10


def test_float32_does_not_pass_for_float64() -> None:
    assert reading(in_precision("float32"), "float64").worst_ratio > 10


def test_one_step_too_few_is_wrong() -> None:
    found = reading({**in_precision("float32", 9), "steps": np.array(10)})
    assert found.worst_ratio > 1000
    assert found.detail.startswith("x[")


def test_an_integer_must_match_exactly() -> None:
    found = reading({**in_precision("float32"), "steps": np.array(11)})
    assert (found.worst_ratio, found.worst_array) == (MISMATCH, "steps")


def test_integers_may_differ_if_they_change_in_the_reference_too() -> None:
    def nearest(data: Arrays, units: int) -> NamedArrays:
        return {
            "choice": np.array(
                [int(float(data.state["x"].flat[0]) > float(round_array(arrays().state["x"], "float32").flat[0]))]
            )
        }

    right = a_reference(run=nearest)
    assert compare({"choice": np.array([1])}, right, 1).worst_ratio <= 1
    assert compare({"choice": np.array([2])}, right, 1).worst_ratio > 1


@pytest.mark.parametrize(
    ("outputs", "detail"),
    [
        ({}, "it returns no steps, x, which the reference has"),
        ({"x": np.zeros((32, 32))}, "it returns no steps, which the reference has"),
        ({"x": np.zeros((32, 31)), "steps": np.array(10)}, "x has shape (32, 31), the reference (32, 32)"),
        ({"x": np.full((32, 32), "?"), "steps": np.array(10)}, "x holds <U1, not numbers"),
    ],
)
def test_outputs_that_cannot_be_compared_fail_with_the_reason(outputs: NamedArrays, detail: str) -> None:
    found = reading(outputs)
    assert (found.worst_ratio, found.detail) == (MISMATCH, detail)


def masked(data: Arrays, _units: int) -> NamedArrays:
    return {"x": np.where(np.arange(4) < 2, -np.inf, data.state["x"].ravel()[:4])}


def test_an_infinity_that_the_reference_has_too_needs_no_declaration() -> None:
    reference = a_reference(units=1, run=masked)
    right = reference.values["x"]
    found = compare({"x": right}, reference, 1)
    assert (found.finite, found.worst_ratio <= 1, found.compared) == (True, True, True)
    assert "infinity in 2 of 4, as in the reference" in found.detail
    for wrong in (-right, np.where(np.arange(4) < 3, -np.inf, right), np.where(np.isinf(right), np.nan, right)):
        assert not compare({"x": wrong}, reference, 1).finite
    assert compare({"x": np.where(np.isinf(right), -1e30, right)}, reference, 1).worst_ratio > 1


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_nan_and_infinity_alone_are_refused_with_how_to_declare_them(number: float) -> None:
    reference = a_reference(units=1, run=lambda _data, _units: {"x": np.full(4, number)})
    found = compare(dict(reference.values), reference, 1)
    assert not found.finite
    assert "in 4 of 4, as in the reference; if it belongs there, declare it" in found.detail


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_single_special_value_is_reported_with_its_position(value: float) -> None:
    outputs = {name: array.copy() for name, array in in_precision("float32").items()}
    outputs["x"][2, 3] = value
    found = reading(outputs)
    assert not found.finite
    assert found.detail == "x[2, 3]: NaN or infinity in 1 of 1024"


def overflowing(data: Arrays, units: int) -> NamedArrays:
    return {"x": np.where(np.arange(4) < 2, np.inf, np.ones(4)) * units}


@pytest.mark.parametrize(
    ("outputs", "finite", "right"),
    [
        ([np.inf, np.inf, 1, 1], True, True),
        ([np.nan, np.inf, 1, 1], True, True),
        ([np.inf, np.inf, np.inf, 1], False, False),
        ([np.inf, 1, 1, 1], False, False),
        ([np.inf, np.inf, 2, 1], True, False),
    ],
)
def test_declared_special_values_are_compared_by_position(outputs: list[float], finite: bool, right: bool) -> None:
    found = compare({"x": np.array(outputs)}, a_reference(units=1, run=overflowing, non_finite=True), 1)
    assert (found.finite, found.worst_ratio <= 1) == (finite, right)


def test_the_reading_states_that_nothing_was_compared_if_nothing_is_finite() -> None:
    def all_infinite(data: Arrays, _units: int) -> NamedArrays:
        return {"x": np.full(data.state["x"].shape, np.inf)}

    reference = a_reference(units=1, run=all_infinite, non_finite=True)
    found = compare({"x": np.full(reference.values["x"].shape, np.inf)}, reference, 1)
    assert (found.finite, found.worst_ratio) == (True, 0)
    assert found.detail.startswith("x: nothing finite to compare")


def test_only_one_run_of_the_reference_is_in_memory_at_a_time() -> None:
    """Weights of a large network took 22 GB when every run was kept, and the judge ran out of memory."""
    made: list[ref[NDArray[Any]]] = []
    alive = []

    def run(given: Arrays, units: int) -> NamedArrays:
        alive.append(sum(each() is not None for each in made))
        result = {name: given.state["x"] * (units + number) for number, name in enumerate("xyz")}
        made.extend(map(ref, result.values()))
        return result

    expected = compute(NumpyProgram(run), Arrays(state={"x": np.arange(3.0)}), 1, "float32")
    assert max(alive) <= 2 * len(expected) + 1


def test_a_computation_that_amplifies_widens_its_own_tolerance() -> None:
    def logistic(data: Arrays, units: int) -> NamedArrays:
        x = np.abs(data.state["x"]) % 1
        for _ in range(units):
            x = 3.9 * x * (1 - x)
        return {"x": x}

    calm, wild = (a_reference(units=units, run=logistic) for units in (1, 20))
    assert np.median(wild.expected["x"].tolerance()) > 100 * np.median(calm.expected["x"].tolerance())


def test_intermediate_roundings_are_allowed_if_rounded_inputs_have_no_effect() -> None:
    def settling(data: Arrays, units: int, after_each: Callable[[Array], Array] = lambda array: array) -> NamedArrays:
        x, w = data.state["x"], data.batches[0]["w"]
        for _ in range(units):
            x = after_each(0.99 * x + 0.01 * w)
        return {"x": x, "steps": data.state["steps"]}

    outputs = settling(arrays(), 1000, lambda array: round_array(array, "float32"))
    right = a_reference(units=1000, run=settling)
    ulps = np.abs(outputs["x"] - right.values["x"]) / (EPSILON["float32"] * np.abs(right.values["x"]))
    assert ulps.max() > 2
    assert compare(outputs, right, 1000).worst_ratio <= 1


def test_a_sum_may_be_rounded_at_its_own_size() -> None:
    def mean_of_squares(data: Arrays, _units: int) -> NamedArrays:
        return {"x": np.mean(np.square(data.state["x"]), keepdims=True)}

    terms = np.random.default_rng(0).standard_normal(2**18).astype(np.float32)
    start = Arrays(state={"x": terms.astype(np.float64)})
    right = Reference(compute(NumpyProgram(mean_of_squares), start, 1, "float32"), "float32")
    one_by_one = np.cumsum(np.square(terms), dtype=np.float32)[-1] / np.float32(2**18)
    ulps = abs(one_by_one - right.values["x"][0]) / (EPSILON["float32"] * right.values["x"][0])
    assert ulps > 16
    assert compare({"x": np.array([one_by_one])}, right, 1).worst_ratio <= 1
    assert compare({"x": right.values["x"] * (1 - 2**-8)}, right, 1).worst_ratio > 1


def test_an_output_that_moves_less_by_chance_has_the_tolerance_of_outputs_of_its_size() -> None:
    """Eight moves of a difference may cancel in one element."""
    tolerance = a_reference(units=1).expected["x"].tolerance()
    assert tolerance.min() > np.median(tolerance) / 10


def exponential(data: Arrays, _units: int) -> NamedArrays:
    return {"y": np.exp(data.batches[0]["x"])}


def wide() -> Arrays:
    return Arrays(state={}, batches=({"x": 4 * np.random.default_rng(0).standard_normal(100_000)},))


def test_a_few_large_outputs_do_not_hide_errors_of_small_ones() -> None:
    start = round_arrays(wide(), "float32")
    right = Reference(compute(NumpyProgram(exponential), start, 1, "float32"), "float32")
    x = start.batches[0]["x"].astype(np.float32)
    assert compare({"y": np.exp(x)}, right, 1).worst_ratio < 0.5
    for wrong in (np.expm1(x), np.where(x < 0, 0, np.exp(x)), np.exp(x) + 1e-3):
        assert compare({"y": wrong}, right, 1).worst_ratio > 1000


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_consecutive_roundings_add_up(precision: Precision) -> None:
    def averages(data: Arrays, _units: int) -> NamedArrays:
        mean, means = 0 * data.batches[0]["x"][0], []
        for row in data.batches[0]["x"]:
            mean = 0.99 * mean + 0.01 * row
            means.append(mean)
        return {"y": np.stack(means)}

    start = round_arrays(Arrays(state={}, batches=({"x": np.random.default_rng(0).random((500, 8))},)), precision)
    right = Reference(compute(NumpyProgram(averages), start, 1, precision), precision)
    mean, means = np.zeros(8), []
    for row in start.batches[0]["x"]:
        scaled = round_array(round_array(np.array(0.99), precision) * mean, precision)
        mean = round_array(scaled + round_array(round_array(np.array(0.01), precision) * row, precision), precision)
        means.append(mean)
    assert compare({"y": np.stack(means)}, right, 1).worst_ratio <= 1
    assert compare({"y": np.stack([means[0], *means[:-1]])}, right, 1).worst_ratio > 1


def test_outputs_that_roundings_change_by_their_own_size_are_not_compared() -> None:
    def explosive(data: Arrays, units: int) -> NamedArrays:
        return {"x": np.sin(1e9 * data.state["x"])}

    right = a_reference(units=1, run=explosive)
    found = compare(right.values, right, 1)
    assert not found.compared
    assert "too sensitive" in found.detail


def order(data: Arrays, _units: int) -> NamedArrays:
    return {"y": np.argsort(data.batches[0]["x"], axis=-1)}


def test_numbers_that_are_equal_may_come_in_either_order() -> None:
    start = round_arrays(Arrays(state={}, batches=({"x": np.random.default_rng(0).random((100, 5000))},)), "float32")
    x = start.batches[0]["x"]
    right = Reference(compute(NumpyProgram(order), start, 1, "float32"), "float32")
    last_first = x.shape[1] - 1 - np.argsort(x[:, ::-1], axis=-1, kind="stable")
    assert np.any(last_first != right.values["y"])
    assert compare({"y": last_first}, right, 1).worst_ratio <= 1
    assert compare({"y": np.argsort(-x, axis=-1)}, right, 1).worst_ratio > 1
    shifted = right.values["y"].copy()
    shifted[0] += 1
    assert compare({"y": shifted}, right, 1).worst_ratio > 1


def test_few_roundings_to_integers_may_differ() -> None:
    def quantised(data: Arrays, _units: int) -> NamedArrays:
        return {"y": np.round(data.batches[0]["x"] @ data.batches[0]["w"]).astype(np.int8)}

    rng = np.random.default_rng(0)
    batch = {"x": rng.standard_normal((512, 512)), "w": rng.standard_normal((512, 512))}
    start = round_arrays(Arrays(state={}, batches=(batch,)), "float32")
    right = Reference(compute(NumpyProgram(quantised), start, 1, "float32"), "float32")
    single = {name: array.astype(np.float32) for name, array in start.batches[0].items()}
    outputs = np.round(single["x"] @ single["w"]).astype(np.int8)
    assert compare({"y": outputs}, right, 1).worst_ratio <= 1
    # Somewhat more of them than in runs of the reference fail, but by a size: on unseen inputs they pass.
    more = outputs.copy()
    more.flat[:: more.size // 8] += 1
    assert 1 < compare({"y": more}, right, 1).worst_ratio < depends_on_inputs.TOLERANCES["float32"]
    many = np.floor(single["x"] @ single["w"]).astype(np.int8)
    assert compare({"y": many}, right, 1).worst_ratio > depends_on_inputs.TOLERANCES["float32"]
    far = outputs.copy()
    far[0, 0] += 2
    assert compare({"y": far}, right, 1).worst_ratio == MISMATCH


def test_booleans_are_compared() -> None:
    def positive(data: Arrays, _units: int) -> NamedArrays:
        return {"y": data.state["x"] > 0}

    right = a_reference(units=2, run=positive)
    assert compare({"y": arrays().state["x"] > 0}, right, 2).worst_ratio == 0
    assert compare({"y": arrays().state["x"] < 0}, right, 2).worst_ratio == MISMATCH


def test_zeros_are_exact() -> None:
    def product(data: Arrays, units: int) -> NamedArrays:
        return {"x": np.zeros(3)}

    right = a_reference(run=product)
    assert compare({"x": np.zeros(3)}, right, 1).worst_ratio == 0
    assert compare({"x": np.array([0.0, 1e-30, 0.0])}, right, 1).worst_ratio > 1


@pytest.mark.parametrize(
    ("precision", "value", "nearest"),
    [
        ("float64", 0.1, 0.1),
        ("float32", 0.1, float(np.float32(0.1))),
        ("tf32", 0.1, float(np.float32(0.1))),
        ("float16", 0.1, float(np.float16(0.1))),
        ("bfloat16", 1 + 2**-8, 1.0),
        ("bfloat16", 1 + 3 * 2**-8, 1 + 2**-6),
        ("bfloat16", -1 - 2**-8 - 2**-20, -1 - 2**-7),
        ("bfloat16", np.inf, np.inf),
        ("float16", 1e6, np.inf),
    ],
)
def test_inputs_are_rounded_to_the_policys_type_half_to_even(
    precision: Precision, value: float, nearest: float
) -> None:
    assert round_array(np.array([value]), precision)[0] == nearest


@pytest.mark.parametrize("precision", list(EPSILON))
def test_rounding_moves_by_half_an_ulp_at_most_and_leaves_integers(precision: Precision) -> None:
    values = np.random.default_rng(0).uniform(0.5, 2, 1000)
    assert np.all(np.abs(round_array(values, precision) / values - 1) <= EPSILON[precision] / 2)
    assert round_array(np.array([2**31 + 1]), precision)[0] == 2**31 + 1


def test_the_reference_is_computed_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = reference_for(a_case(), 4, tmp_path)
    monkeypatch.setattr("accelbench_runner.judge.reference.compute", None)
    again = reference_for(a_case(), 4, tmp_path)
    assert np.array_equal(first.values["x"], again.values["x"])
    assert np.array_equal(first.expected["x"].tolerance(), again.expected["x"].tolerance())


@pytest.mark.slow
def test_the_reference_of_a_training_step_fills_memory_a_few_times_at_most(tmp_path: Path) -> None:
    """That of a ViT-Large, 304 million weights in float64, then fits a laptop's 24 GiB: 20 GB for 8.1 times."""
    small = {"work": "train", "layers": 12, "width": 64, "heads": 4, "image": 32, "classes": 10}
    case = a_case().model_copy(update={"workload": "vit", "parameters": small})
    reference_for(case, 1, tmp_path)  # modules that it imports are not meant
    tracemalloc.start()
    try:
        weights = reference_for(case, 2, tmp_path).values.values()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 8.5 * sum(each.nbytes for each in weights)


def test_a_reference_with_other_numbers_each_time_is_refused() -> None:
    noise = np.random.default_rng(0)

    def drawing(data: Arrays, units: int) -> NamedArrays:
        return {"x": chain(data, units)["x"] * (1 + 1e-3 * noise.standard_normal())}

    with pytest.raises(ValueError, match="x differs between two runs on the same inputs"):
        a_reference(run=drawing)


@pytest.mark.parametrize(("step", "still"), [(1e-8, True), (1e-2, False)])
def test_nothing_is_compared_if_a_step_without_effect_would_pass(step: float, *, still: bool) -> None:
    def creeping(data: Arrays, units: int) -> NamedArrays:
        return {"x": data.state["x"] * (1 + step) ** units}

    right = a_reference(units=2, run=creeping)
    right = dataclasses.replace(right, leaves_state_unchanged=leaves_state_unchanged(arrays().state, right.expected))
    found = compare({"x": creeping(arrays(), 2)["x"]}, right, 2)
    assert found.worst_ratio <= 1
    assert found.compared is not still
    assert ("a step that does nothing would pass" in found.detail) is still


@pytest.mark.parametrize(("run", "counts"), [(chain, True), (lambda data, _units: {"y": data.state["x"]}, False)])
def test_outputs_that_half_of_the_units_give_too_do_not_count_units(
    run: Callable[[Arrays, int], NamedArrays], *, counts: bool
) -> None:
    for units, expected in ((1, True), (4, counts)):
        right = a_reference(units=units, run=run)
        assert counts_units(NumpyProgram(run), arrays(), units, right.expected) is expected


def test_an_imaginary_part_of_the_wrong_sign_is_wrong(tmp_path: Path) -> None:
    def turning(data: Arrays, _units: int) -> NamedArrays:
        return {"z": np.exp(1j * data.state["x"])}

    right = a_reference(run=turning)
    for sign, wrong in ((1, False), (-1, True)):
        np.savez(tmp_path / "outputs.npz", z=np.exp(sign * 1j * arrays().state["x"].astype(np.float32)))
        assert (compare(right.to_compared_form(read_outputs(tmp_path)), right, 1).worst_ratio > 1) is wrong


def test_outputs_may_have_any_name(tmp_path: Path) -> None:
    written = {"file": np.ones(2), "allow_pickle": np.zeros(())}
    save(tmp_path / "outputs.npz", written)
    found = read_outputs(tmp_path)
    assert found.keys() == written.keys()
    np.testing.assert_array_equal(found["file"], written["file"])


def test_complex_inputs_are_perturbed_by_their_parts() -> None:
    rng = np.random.default_rng(0)
    z = rng.standard_normal((16, 16)) + 1j * rng.standard_normal((16, 16))
    data = Arrays(state={}, batches=({"z": z},))

    def product(data: Arrays, _units: int) -> NamedArrays:
        return {"y": data.batches[0]["z"] @ data.batches[0]["z"]}

    right = Reference(compute(NumpyProgram(product), round_arrays(data, "float32"), 1, "float32"), "float32")
    single = z.astype(np.complex64)
    assert compare(as_real({"y": single @ single}), right, 1).worst_ratio < 1
    assert compare(as_real({"y": (single @ single) * np.float32(1.001)}), right, 1).worst_ratio > 1


def test_an_array_of_the_state_that_moves_shows_that_something_was_done() -> None:
    def unchanged(run: Any) -> bool:
        return leaves_state_unchanged(arrays().state, a_reference(run=run).expected)

    assert not unchanged(lambda data, _units: {"y": data.state["x"]})
    assert unchanged(lambda data, _units: {"x": data.state["x"], "loss": np.sum(data.state["x"])})
    assert not unchanged(lambda data, units: {"x": data.state["x"], "steps": np.array(units)})


@pytest.mark.parametrize(("precision", "advised"), [("float16", True), ("bfloat16", False), ("float32", False)])
def test_an_overflow_in_float16_is_reported_with_the_remedy(precision: Precision, advised: bool) -> None:
    outputs = in_precision(precision)
    outputs["x"][3, 4] = np.inf
    found = reading(outputs, precision)
    assert found.detail.startswith("x[3, 4]: NaN or infinity in 1 of 1024")
    assert ("use bfloat16" in found.detail) == advised
