"""Operations of NumPy are counted correctly or not at all, as too small a count would fail an honest program."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from accelbench.frameworks import Options
from accelbench.workload import Program
from accelbench_runner.frameworks.adapter import AdapterSettings, UnsupportedError
from accelbench_runner.frameworks.numpy import CountingArray, NumPy

Step = Callable[[Any, Any], Any]
STATE = {"x": np.full((4, 6), 0.5)}
BATCH = {"w": np.full((6, 3), 0.5)}


def adapter(precision: Any = "float32", platform: Any = "cpu") -> NumPy:
    return NumPy(
        AdapterSettings(
            mode="eager", options=Options(), platform=platform, precision=precision, threads=1, differentiates=False
        )
    )


def counted(step: Step) -> tuple[float | None, list[str], int, Mapping[str, int]]:
    """Operations, types, products, and what was dispatched, of one call of `step`."""
    numpy = adapter()
    work = numpy.prepare(
        Program(state=numpy.put(STATE), batches=numpy.put(({**BATCH},)), step=lambda s, b: (s, step(s["x"], b["w"])))
    )
    found = numpy.accounting.arithmetic(work)
    assert found.written == found.run
    dispatched = numpy.accounting.count_dispatched(lambda: work.call(work.fresh(), work.batches))
    return found.run, list(found.types), numpy.accounting.operations(work).operations.products, dispatched


@pytest.mark.parametrize(
    ("step", "operations", "products"),
    [
        (lambda x, w: x @ w, 2 * 4 * 6 * 3, 1),
        (lambda x, w: np.matmul(x, w) + 1, 2 * 4 * 6 * 3 + 12, 1),
        (lambda x, _: np.sin(x) + np.cos(x), 3 * 24, 0),
        (lambda x, _: x.sum(), 24, 0),
        (lambda x, _: x.T.reshape(3, 8) * 2, 24, 0),
        (lambda _, w: w * w, 18, 0),  # of inputs alone
        (lambda x, _: np.maximum(x, 0) > -np.abs(x), 0, 0),  # these only choose, compare and change signs
    ],
)
def test_operations_are_counted(step: Step, operations: int, products: int) -> None:
    found = counted(step)
    assert found[:3] == (operations, ["float32"], products)


@pytest.mark.parametrize(
    ("step", "operations"),
    [
        (lambda x, _: (x + 1j) * (x - 1j), (2 + 2 + 6) * 24),
        (lambda x, w: (x + 0j) @ w, 2 * 24 + 4 * 2 * 4 * 6 * 3),
    ],
)
def test_complex_operations_count_as_those_on_real_numbers(step: Step, operations: int) -> None:
    assert counted(step)[:2] == (operations, [])


@pytest.mark.parametrize(
    ("step", "products"),
    [
        (lambda x, w: np.tensordot(x, w, 1), 1),
        (lambda x, w: np.einsum("ij,jk->ik", x, w), 1),
        (lambda x, _: np.linalg.norm(x), 0),
        (lambda x, _: np.fft.rfft(x), 0),
    ],
)
def test_operations_that_cannot_be_counted_have_no_number(step: Step, products: int) -> None:
    operations, _, found, _ = counted(step)
    assert (operations, found) == (None, products)


def test_the_state_of_a_timed_call_is_a_plain_array() -> None:
    numpy = adapter()
    work = numpy.prepare(Program(state=numpy.put(STATE), step=lambda s, _: ({"x": s["x"] + 1}, None)))
    numpy.accounting.arithmetic(work)
    state, _ = work.call(work.fresh(), work.batches)
    assert type(state["x"]) is np.ndarray
    assert not isinstance(state["x"], CountingArray)


def test_calls_that_do_the_same_dispatch_the_same() -> None:
    assert counted(lambda x, _: x + x)[3] == counted(lambda x, _: x + x)[3] == {"add": 1}


def test_modes_that_numpy_lacks_are_unsupported() -> None:
    with pytest.raises(UnsupportedError, match="bfloat16"):
        adapter(precision="bfloat16")
