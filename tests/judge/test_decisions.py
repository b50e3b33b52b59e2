"""References that branch on their numbers are distinguished from those that always compute the same."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

from accelbench.workload import Arrays
from accelbench_runner.judge.decisions import DECIDES, reference_limit

START = Arrays(
    state={"x": np.random.default_rng(0).uniform(1, 2, (6, 6))},
    batches=({"n": np.arange(6)},),
)


def adam(x: Any) -> Any:
    mean = square = 0 * x
    for step in range(1, 6):
        mean, square = 0.9 * mean + 0.1 * x, 0.999 * square + 0.001 * x * x
        x = x - (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    return x


def rows_of(x: Any) -> Any:
    total = 0 * x[0]
    for row in x:
        total += np.where(row > 1.5, row, special.erf(row))
    return total


def newton(x: Any) -> Any:
    root = x
    while np.abs(root * root - x).max() > 1e-9:
        root = (root + x / root) / 2
    return root


def steps_in_blocks(x: Any) -> Any:
    root = x
    while not np.all(np.abs(root * root - x) < 1e-9):
        root = (root + x / root) / 2
    return root


def close_enough(x: Any) -> Any:
    return x if np.allclose(x, x + 1e-9) else 2 * x


def first_of(x: Any) -> Any:
    return x if float(x[0, 0]) > 0 else -x


def smallest_of(x: Any) -> Any:
    return x * min(x[0])


ALWAYS_THE_SAME = (
    adam,
    rows_of,
    lambda x: np.linalg.eigh(x @ x.T).eigenvectors,
    lambda x: x.mean(0) + np.sort(x.std(1)) + x[:, 0].max(),
    lambda x: np.fft.ifft(np.fft.fft(x)).real,
)
DECIDING = (newton, steps_in_blocks, close_enough, first_of, smallest_of)


def limit(function: Callable[[Any], Any]) -> str | None:
    return reference_limit(lambda arrays: {"y": function(arrays.state["x"])}, START)


@pytest.mark.parametrize("function", ALWAYS_THE_SAME)
def test_a_reference_that_never_branches_on_its_numbers_has_no_limit(function: Callable[[Any], Any]) -> None:
    assert limit(function) == ""


@pytest.mark.parametrize("function", DECIDING)
def test_a_reference_that_branches_on_its_numbers_may_stop_at_a_tolerance(function: Callable[[Any], Any]) -> None:
    assert limit(function) == DECIDES


def test_the_limit_of_a_function_that_needs_ordinary_arrays_is_unknown() -> None:
    assert limit(lambda x: np.asarray(x) + 1) is None
    assert limit(lambda x: {}[x.shape]) is None
