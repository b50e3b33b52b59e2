"""Of the operations that a JAX program writes, those are told apart that no compiler needs to run."""

from functools import cache
from typing import Any

import pytest

from launch.inside import inside

pytestmark = pytest.mark.slow

N, SIDE = 1000, 16
PRODUCT, SQUARE = 2 * SIDE**3, SIDE**2
SOLVE = 2 * SIDE**3 / 3 + 2 * SIDE**3
"""Operations of factorising a matrix, and of solving for as many right sides as it has rows."""
COUNT = """
import jax, jax.numpy as jnp
from jax import lax
from dataclasses import asdict
from accelbench_runner.frameworks.jaxpr_values import count_jaxpr
v, x = jnp.ones(1000), jnp.ones((16, 16))
ids = jnp.zeros(1000, int)

@jax.custom_jvp
def cube(v):
    return v * v * v

cube.defjvp(lambda v, t: (cube(*v), 3 * v[0] ** 2 * t[0]))

def grad(f):
    return jax.grad(lambda v: f(v).sum())

def pulls_nothing_back(x):
    jax.vjp(lambda x: jnp.tanh(x @ x), x)
    return x + 1

def drops(x):
    (x @ x).sum()
    return x + 1

def drops_in_a_loop(x):
    return lax.scan(lambda c, row: (c + row, row @ x), x[0], x)[0]

def invariant(x):
    return lax.fori_loop(0, 10, lambda i, y: y + jnp.tanh(x @ x), x)

def carried_unchanged(x):
    return lax.scan(lambda c, row: (c, (c @ c)[0] + row), x, x)[1]

def repeated_scan(x):
    f = lambda: lax.scan(lambda c, row: (c @ x + row, None), x[0], x)[0]
    return f() + f()

programs = {
    "a gradient": (grad(jnp.sin), v),
    "the gradient of a linear function": (grad(lambda v: 3 * v), v),
    "a gradient and the value": (jax.value_and_grad(lambda v: jnp.sin(v).sum()), v),
    "the gradient of relu": (grad(jax.nn.relu), v),
    "a gradient by custom_jvp": (grad(cube), v),
    "a derivative that nobody uses": (pulls_nothing_back, x),
    "a solve": (lambda x: jnp.linalg.solve(x, x), x),
    "a sum by segments": (lambda v: jax.ops.segment_sum(v, ids, num_segments=9), v),
    "the largest by segments": (lambda v: jax.ops.segment_max(v, ids, num_segments=9), v),
    "a sort": (lambda v: jnp.sort(v), v),
    "a loop": (lambda x: lax.fori_loop(0, 10, lambda i, y: y @ x, x), x),
    "ten products alike": (lambda x: sum(jnp.sin(x @ x) for _ in range(10)), x),
    "ten calls alike": (lambda x: sum(jax.jit(lambda x: jnp.sin(x @ x))(x) for _ in range(10)), x),
    "sums in either order": (lambda x: jnp.exp(x + 2 * x) * jnp.exp(2 * x + x), x),
    "an invariant in a loop": (invariant, x),
    "a state that does not change": (carried_unchanged, x),
    "two loops alike": (repeated_scan, x),
    "a result dropped": (drops, x),
    "a result dropped in a loop": (drops_in_a_loop, x),
    "the last of ten": (lambda x: jnp.stack([(x + i) @ x for i in range(10)])[-1], x),
    "what a constant does not choose": (lambda x: jnp.where(False, x @ x, x + 1), x),
    "a product of constants": (lambda x: x + jnp.ones((16, 16)) @ jnp.ones((16, 16)), x),
    "numbers as formulas": (lambda v: v * jnp.sqrt(2 / jnp.pi), v),
    "a branch chosen by data": (lambda x: lax.cond(x[0, 0] > 0, lambda: x @ x, lambda: x), x),
    "a loop as long as data say": (lambda v: lax.while_loop(lambda v: v[0] < 9, lambda v: v * 2, v), v),
    "a complex product": (lambda x: (x + 0j) @ (x + 1j), x),
    "a transform": (lambda v: jnp.fft.ifft(jnp.fft.fft(v[:512] + 0j)), v),
}
found = {name: asdict(count_jaxpr(jax.make_jaxpr(f)(a).jaxpr)) for name, (f, a) in programs.items()}
print(json.dumps(found))
"""
EXPECTED: dict[str, dict[str, float | None]] = {
    "a gradient": {"written": 4 * N, "unneeded": 2 * N},  # sin and the sum; cos and a product
    "the gradient of a linear function": {"written": 3 * N, "unneeded": 3 * N},  # which is the same for every input
    "a gradient and the value": {"written": 4 * N},
    "the gradient of relu": {"written": N, "unneeded": N},
    "a gradient by custom_jvp": {"written": 3 * N + 3 * N, "unneeded": 3 * N},
    "a derivative that nobody uses": {"dropped": PRODUCT + 2 * SQUARE},
    "a solve": {"written": SOLVE},
    "a sum by segments": {"written": N},
    "the largest by segments": {"written": 0},
    "a sort": {"written": 0},
    "a loop": {"written": 10 * PRODUCT},
    "ten products alike": {"written": 10 * (PRODUCT + 2 * SQUARE), "repeated": 9 * (PRODUCT + SQUARE)},
    "ten calls alike": {"written": 10 * (PRODUCT + 2 * SQUARE), "repeated": 9 * (PRODUCT + SQUARE)},
    "sums in either order": {"repeated": 3 * SQUARE},
    "an invariant in a loop": {"written": 10 * (PRODUCT + 2 * SQUARE), "repeated": 9 * (PRODUCT + SQUARE)},
    "a state that does not change": {"repeated": (SIDE - 1) * PRODUCT},
    "two loops alike": {"repeated": SIDE * (2 * SQUARE + SIDE)},
    "a result dropped": {"written": PRODUCT + 2 * SQUARE, "dropped": PRODUCT + SQUARE},
    "a result dropped in a loop": {"written": SIDE * (2 * SQUARE + SIDE), "dropped": SIDE * 2 * SQUARE},
    "the last of ten": {"dropped": 9 * (PRODUCT + SQUARE)},
    "what a constant does not choose": {"written": PRODUCT + SQUARE, "dropped": PRODUCT},
    "a product of constants": {"written": PRODUCT + SQUARE, "constant": PRODUCT},
    "numbers as formulas": {"written": N},
    "a branch chosen by data": {"written": None},
    "a loop as long as data say": {"written": None},
    "a complex product": {"written": 4 * PRODUCT + 4 * SQUARE},
    "a transform": {"written": 2 * 5 * 512 * 9 + 2 * 512},
}


@cache
def counted() -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = inside("jax", COUNT)
    return found


@pytest.mark.parametrize("program", EXPECTED)
def test_work_that_need_not_run_is_distinguished_from_work_that_must(program: str) -> None:
    expected: dict[str, Any] = {"unneeded": 0, "dropped": 0, "repeated": 0, "constant": 0, **EXPECTED[program]}
    found = counted()[program]
    assert {name: found[name] for name in expected} == pytest.approx(expected)
