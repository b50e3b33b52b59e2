"""ATen operations count as JAX's do, and those are found that a compiler need not run."""

from functools import cache

import pytest

from launch.inside import inside

pytestmark = pytest.mark.slow

N, SIDE = 1000, 16
PRODUCT, SQUARE = 2 * SIDE**3, SIDE**2
STEPS, BATCH, HIDDEN = 5, 8, 32
COUNT = """
import torch
from accelbench_runner.frameworks.torch_values import ValueCounter
v, x, z = torch.ones(1000), torch.eye(16) * 2, torch.complex(torch.eye(16), torch.eye(16))
ids, images = torch.zeros(1000, dtype=torch.long), torch.ones(1, 1, 8, 8)
cells = torch.nn.LSTM(16, 32)
rows = torch.ones(5, 8, 16)
parameter = torch.ones(16, 16, requires_grad=True)

def backward():
    parameter.grad = None
    (parameter @ x).sum().backward()
    with torch.no_grad():
        parameter.sub_(parameter.grad)

def overwritten():
    y = torch.zeros(16, 16)
    y.add_(x @ x)
    y.copy_(x)
    return y

def repeated_in_place():
    y = torch.zeros(16, 16)
    for _ in range(10):
        y.add_(1.0)
    return y

programs = {
    "a solve": lambda: torch.linalg.solve(x, x),
    "a sum by segments": lambda: torch.zeros(9).index_add_(0, ids, v),
    "the largest by segments": lambda: torch.zeros(9).scatter_reduce(0, ids, v, "amax"),
    "a sum by index": lambda: torch.zeros(9).index_put((ids,), v, accumulate=True),
    "comparing and sorting": lambda: torch.sort(torch.relu(v)).values > v.abs(),
    "pooling": lambda: torch.nn.functional.max_pool2d(images, 2),
    "a complex product": lambda: z @ z,
    "a complex sum": lambda: z + z,
    "a transform": lambda: torch.fft.fft(z),
    "a transform of real numbers": lambda: torch.fft.rfft(v[:512]),
    "recurrent cells": lambda: cells(rows)[0],
    "a sparse product": lambda: x.to_sparse_csr() @ x,
    "ten products alike": lambda: sum(torch.sin(x @ x) for _ in range(10)),
    "products of random numbers": lambda: sum(torch.rand(16, 16) @ x for _ in range(10)),
    "the same in place": repeated_in_place,
    "a result dropped": lambda: [(x @ x).sum(), x + 1][1],
    "the last of ten": lambda: [torch.tanh((x + i) @ x) for i in range(10)][-1],
    "a result that a number tells": lambda: (x @ x).sum().item(),
    "a step that changes its weights": backward,
    "memory that is used again": lambda: [torch.sin(torch.cos(v + i)) for i in range(3)],
}
found = {}
with torch.no_grad():
    for name, program in programs.items():
        counter = ValueCounter()
        with torch.set_grad_enabled(program is backward), counter:
            results = program()
        found[name] = [counter.operations, *counter.count_omittable(results).values()]

moving = {
    "a sum": lambda: v + v,
    "a view": lambda: v.view(10, 100),
    "a product": lambda: x @ x,
    "a broadcast array": lambda: v.expand(3, 1000) + 1,
    "an update in place": lambda: v.mul_(1),
    "a copy": lambda: torch.empty(1000).copy_(v),
    "rows that are looked up": lambda: torch.ones(9, 4)[ids],
    "rows that are updated": lambda: v.index_add_(0, ids, v + 1),
    "ten passes": lambda: [v.add_(1) for _ in range(10)],
}
with torch.no_grad():
    for name, program in moving.items():
        counter = ValueCounter()
        with counter:
            program()
        found[name] = list(counter.dispatched_fields().values())
print(json.dumps(found))
"""
EXPECTED: dict[str, tuple[float, float, float]] = {  # operations, those dropped, those repeated
    "a solve": (2 * SIDE**3 / 3 + 2 * SIDE**3, 0, 0),
    "a sum by segments": (N, 0, 0),
    "the largest by segments": (0, 0, 0),
    "a sum by index": (N, 0, 0),
    "comparing and sorting": (0, 0, 0),
    "pooling": (0, 0, 0),
    "a complex product": (4 * PRODUCT, 0, 0),
    "a complex sum": (2 * SQUARE, 0, 0),
    "a transform": (5 * SQUARE * 4, 0, 0),
    "a transform of real numbers": (5 * 512 * 9 / 2, 0, 0),
    "recurrent cells": (2 * STEPS * BATCH * 4 * HIDDEN * (SIDE + HIDDEN), 0, 0),
    "a sparse product": (2 * SIDE * SIDE, 0, 0),
    "ten products alike": (10 * (PRODUCT + 2 * SQUARE), 0, 9 * (PRODUCT + SQUARE)),
    "products of random numbers": (10 * (PRODUCT + 2 * SQUARE), 0, 0),
    "the same in place": (10 * SQUARE, 0, 0),
    "a result dropped": (PRODUCT + 2 * SQUARE, PRODUCT + SQUARE, 0),
    "the last of ten": (10 * (PRODUCT + 2 * SQUARE), 9 * (PRODUCT + 2 * SQUARE), 0),
    "a result that a number tells": (PRODUCT + SQUARE, 0, 0),
    "a step that changes its weights": (2 * PRODUCT + 2 * SQUARE, 0, 0),
    "memory that is used again": (9 * N, 0, 0),
}
FLOAT, INTEGER = 4, 8
MOVED: dict[str, tuple[int, int]] = {  # operations, and the bytes that they read and write
    "a sum": (1, 2 * FLOAT * N),
    "a view": (0, 0),
    "a product": (1, 2 * FLOAT * SQUARE),
    "a broadcast array": (1, FLOAT * (N + 3 * N)),
    "an update in place": (1, 2 * FLOAT * N),
    "a copy": (1, 2 * FLOAT * N),
    "rows that are looked up": (2, FLOAT * 9 * 4 + INTEGER * N + 2 * FLOAT * N * 4),
    "rows that are updated": (2, 2 * FLOAT * N + INTEGER * N + 3 * FLOAT * N),
    "ten passes": (10, 10 * 2 * FLOAT * N),
}


@cache
def counted() -> dict[str, list[float]]:
    found: dict[str, list[float]] = inside("pytorch", COUNT)
    return found


@pytest.mark.parametrize("program", EXPECTED)
def test_operations_count_as_in_jax_and_unnecessary_ones_are_named(program: str) -> None:
    assert counted()[program] == pytest.approx(EXPECTED[program])


@pytest.mark.parametrize("program", MOVED)
def test_bytes_are_those_of_the_operands_and_results_of_operations(program: str) -> None:
    assert counted()[program] == list(MOVED[program])
