"""Outputs near the smallest numbers of their type."""

import numpy as np

from accelbench.workload import Arrays, NamedArrays
from accelbench_runner.judge.arithmetic import round_arrays
from accelbench_runner.judge.parity import compare
from accelbench_runner.judge.reference import Reference, compute
from accelbench_runner.judge.reference_program import NumpyProgram

LOGITS = Arrays(state={}, batches=({"x": 3 * np.random.default_rng(3).standard_normal((40, 2000))},))


def softmax(arrays: Arrays, _units: int) -> NamedArrays:
    exponentials = np.exp(arrays.batches[0]["x"] - arrays.batches[0]["x"].max(-1, keepdims=True))
    return {"y": exponentials / exponentials.sum(-1, keepdims=True)}


def test_numbers_that_are_subnormal_in_float16_are_compared() -> None:
    start = round_arrays(LOGITS, "float16")
    right = Reference(compute(NumpyProgram(softmax), start, 1, "float16"), "float16")
    value = right.values["y"]
    assert np.median(value) < 2**-14  # most of them are
    found = compare({"y": value.astype(np.float16)}, right, 1)
    assert (found.compared, found.worst_ratio <= 1) == (True, True)
    assert compare({"y": (1.1 * value).astype(np.float16)}, right, 1).worst_ratio > 1
    assert compare({"y": np.where(value < 2**-14, 0, value).astype(np.float16)}, right, 1).worst_ratio > 1
