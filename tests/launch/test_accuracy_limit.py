"""Limits of a program's accuracy: loops that branch on numbers, and numbers rounded to float32."""

import pytest

from accelbench_runner.frameworks.adapter import is_rounded_to_float32
from launch.inside import inside

LIMITS = """
from dataclasses import replace
import numpy as np

limits = {}
for name, function in PROGRAMS.items():
    adapter, program, _ = prepare("matmul-chain", USE, {"size": 8, "length": 1}, precision="float64")
    step = lambda x, batch, function=function: (function(x, batch["w"]), None)
    work = adapter.prepare(replace(program, step=step))
    adapter.compile_ahead(work)
    limits[name] = adapter.accounting.arithmetic(work).accuracy_limit
print(json.dumps(limits))
"""
IN_JAX = """
import jax
import jax.numpy as jnp

def converges(x, w):
    return jax.lax.while_loop(lambda x: jnp.abs(x - x @ w).max() > 1e9, lambda x: x @ w, x)

USE = "jax/jit"
PROGRAMS = {
    "exact": lambda x, w: jax.nn.relu(0.1 * x @ w - 0.375) / 3,
    "a fixed number of steps": lambda x, w: jax.lax.fori_loop(0, 10, lambda _, x: x @ w, x),
    "converges": converges,
    "chooses": lambda x, w: jax.lax.cond(x[0, 0] > 0, lambda: x, lambda: w),
    "a scalar": lambda x, w: x * jnp.exp(x[0, 0].astype(jnp.float32)),
    "a constant": lambda x, w: x * jnp.float32(0.1),
}
"""
IN_PYTORCH = """
import torch

def converges(x, w):
    while (x - x @ w).abs().max() > 1e9:
        x = x @ w
    return x

def adam(x, w):
    w = w.clone().requires_grad_()
    optimizer = torch.optim.Adam([w], foreach=False)
    with torch.enable_grad():
        (x @ w).square().mean().backward()
    optimizer.step()
    return w.detach()

def repeated(x, w):
    for _ in range(10):
        x = x @ w
    return x

USE = "pytorch/eager"
PROGRAMS = {
    "exact": lambda x, w: torch.relu(0.1 * x @ w - 0.375) / 3,
    "a fixed number of steps": repeated,
    "a constant tensor": lambda x, w: x * torch.tensor(0.1),
    "the steps of an optimizer": adam,
    "converges": converges,
    "chooses": lambda x, w: x if x[0, 0].item() > 0 else w,
    "a scalar": lambda x, w: x * x[0, 0].float().exp(),
    "a constant": lambda x, w: x * torch.tensor(0.1, dtype=torch.float32),
}
"""
DECIDES = "its numbers decide on a loop or a branch, so that it may stop at a tolerance"
ROUNDED = "it computes with numbers that were rounded to float32"
EXPECTED = {"converges": DECIDES, "chooses": DECIDES, "a scalar": ROUNDED, "a constant": ROUNDED}


@pytest.mark.parametrize(("framework", "programs"), [("jax", IN_JAX), ("pytorch", IN_PYTORCH)])
def test_limits_of_the_accuracy_of_a_program_are_detected(framework: str, programs: str) -> None:
    limits = inside(framework, programs + LIMITS)
    assert limits == {name: EXPECTED.get(name, "") for name in limits}
    assert limits.keys() > EXPECTED.keys()


def test_decisions_in_numpy_are_unknown() -> None:
    programs = 'USE, PROGRAMS = "numpy/eager", {"exact": lambda x, w: x @ w}\n'
    assert inside("numpy", programs + LIMITS) == {"exact": None}


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0.10000000149011612, True), (0.1, False), (0.375, False), (16777217.0, False), (1 / 3, False), (1e-8, False)],
)
def test_a_number_that_was_rounded_to_float32_is_recognised(number: float, expected: bool) -> None:
    assert is_rounded_to_float32(number) == expected
