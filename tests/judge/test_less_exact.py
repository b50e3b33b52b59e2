"""Programs whose formula is right and whose algorithm is less exact than the reference's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import fft, special

from accelbench.api.case import Precision
from accelbench.api.result import CheckOutcome
from accelbench.launch.record import UnseenReading
from accelbench.validity import depends_on_inputs, formula, parity
from accelbench.validity.evidence import Evidence
from accelbench.workload import Arrays
from accelbench_runner.judge.arithmetic import round_array, round_arrays
from accelbench_runner.judge.parity import compare
from accelbench_runner.judge.reference import Reference, compute
from accelbench_runner.judge.reference_program import NumpyProgram
from judge.launches import a_case, a_launch

Array = NDArray[Any]
Function = Callable[[Array], Array]
X = np.random.default_rng(5).normal(0, 1.5, 20_000)
RESPONSE = np.random.default_rng(6).normal(size=1000) * np.exp(-np.arange(1000) / 150)


def exact(x: Array) -> Array:
    """Compute gelu, exactly where it is small."""
    return np.asarray(x * special.ndtr(x))


def by_erf(x: Array) -> Array:
    """Compute gelu as frameworks do: 1 + erf loses its digits for negative numbers."""
    return 0.5 * x * (1 + special.erf(x / np.sqrt(2)).astype(x.dtype))


def moving_average(x: Array) -> Array:
    """Return the mean of each 25 neighbours, summed anew for each."""
    return np.asarray(np.lib.stride_tricks.sliding_window_view(x, 25).mean(-1))


def by_cumulative_sums(x: Array) -> Array:
    """Return the same as a difference of two cumulative sums, which round once for each number before them."""
    sums = np.concatenate([np.zeros(1, x.dtype), np.cumsum(x, dtype=x.dtype)])
    return (sums[25:] - sums[:-25]) / x.dtype.type(25)


def reverberation(x: Array) -> Array:
    """Convolve the first eighth of the numbers, which silence follows, with a decaying response."""
    return np.convolve(before_silence(x), RESPONSE.astype(x.dtype))[: len(x)]


def reverberation_by_fft(x: Array) -> Array:
    """Return the same by FFT, whose error has the size of the largest output everywhere, in the silence as well."""
    size = len(x) + len(RESPONSE)
    product = fft.rfft(before_silence(x), size) * fft.rfft(RESPONSE.astype(x.dtype), size)
    return np.asarray(fft.irfft(product, size)[: len(x)])


def before_silence(x: Array) -> Array:
    """Return the numbers with silence, which is zeros, after the first eighth."""
    return np.where(np.arange(len(x)) < len(x) // 8, x, 0).astype(x.dtype)


def outcomes(
    function: Function, in_float64: Function, precision: Precision = "float32", reference: Function = exact
) -> dict[str, CheckOutcome]:
    """Return the outcomes of a program that is `function` in the policy's type, and `in_float64` in float64."""
    case = a_case()
    case = case.model_copy(
        update={"measurement": case.measurement.model_copy(update={"precision": precision})}, deep=True
    )
    start = Arrays(state={}, batches=({"x": X},))
    rounded = round_arrays(start, precision)

    def right(arrays: Arrays, policy: Precision) -> Reference:
        program = NumpyProgram(lambda data, _units: {"y": reference(data.batches[0]["x"])})
        return Reference(compute(program, arrays, 1, policy), policy)

    dtype = np.float64 if precision == "float64" else np.float32
    with np.errstate(all="ignore"):
        output = round_array(function(rounded.batches[0]["x"].astype(dtype)).astype(np.float64), precision)
        reading = compare({"y": output}, right(rounded, precision), 1)
        if precision != "float64":
            wide = compare({"y": in_float64(X)}, right(start, "float64"), 1)
            reading = reading.model_copy(update={"formula": wide})
    reading = reading.model_copy(update={"unseen": UnseenReading(reading=reading, changes=True)})
    launch = a_launch(parity=reading)
    [found] = formula.CHECK.outcomes(Evidence(case=case, launches=(launch,)))
    return {
        "parity": parity.CHECK.evaluate(case, launch).outcome,
        "formula": found.outcome,
        "depends-on-inputs": depends_on_inputs.CHECK.evaluate(case, launch).outcome,
    }


@pytest.mark.parametrize("precision", ["float64", "float32", "bfloat16", "float16"])
def test_an_algorithm_that_is_less_exact_in_every_precision_passes(precision: Precision) -> None:
    assert set(outcomes(by_erf, by_erf, precision).values()) == {"passed"}


@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_an_algorithm_whose_error_is_that_of_the_largest_output_everywhere_passes(precision: Precision) -> None:
    found = outcomes(reverberation_by_fft, reverberation_by_fft, precision, reverberation)
    assert set(found.values()) == {"passed"}


def test_such_errors_in_float32_alone_fail() -> None:
    found = outcomes(reverberation_by_fft, reverberation, reference=reverberation)
    assert (found["formula"], found["parity"]) == ("passed", "failed")


def test_a_function_that_is_less_exact_in_float32_alone_fails() -> None:
    found = outcomes(by_erf, exact)
    assert (found["formula"], found["parity"]) == ("passed", "failed")


def test_a_right_formula_may_round_more_often_in_all_outputs() -> None:
    found = outcomes(by_cumulative_sums, by_cumulative_sums, reference=moving_average)
    assert (found["formula"], found["parity"]) == ("passed", "passed")


def test_a_right_formula_may_not_have_wrong_numbers_in_a_few_outputs() -> None:
    def wrong_in_two(x: Array) -> Array:
        average = moving_average(x)
        average[[3, 500]] *= x.dtype.type(1 + 1e-5)  # 3.5 tolerances
        return average

    found = outcomes(wrong_in_two, moving_average, reference=moving_average)
    assert (found["formula"], found["parity"]) == ("passed", "failed")


@pytest.mark.parametrize(
    ("wrong", "precision"),
    [
        (lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))), "float32"),
        (lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))), "bfloat16"),
        (lambda x: exact(x) + 1e-6, "float32"),
        (lambda x: exact(x) + 1e-6, "bfloat16"),
        (lambda x: np.where(x < -1, 0, exact(x)), "float64"),
        (lambda x: exact(x) + 1e-12, "float64"),
    ],
)
def test_a_wrong_formula_does_not_count_as_a_less_exact_one(wrong: Function, precision: Precision) -> None:
    assert "failed" in outcomes(wrong, wrong, precision).values()
