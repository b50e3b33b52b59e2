"""Define programs that compute single numbers: with heavy tails, cancellation, kinks and steps."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from scipy import special
from torch.nn import functional

from benchmarks.parity.program import FLOAT32, WITHOUT_FLOAT16, Fault, Program, normal, uniform

KNOTS = 64
"""Number of points of the table that is interpolated."""
STEP = 0.125
"""Grid to which numbers are rounded."""
RARE = -9.3
"""About 1 % of the inputs of `exp` are smaller."""
LAST_CHANGE = 1e-4
"""Change at which the iteration of the cube root stops."""


def _lerp_numpy(x, table):
    position = x * (KNOTS - 1)
    knot = np.minimum(np.floor(position), KNOTS - 2)
    index = knot.astype(np.int64)
    return table[index] + (position - knot) * (table[index + 1] - table[index])


def _lerp_jax(x, table, last=KNOTS - 2):
    position = x * (KNOTS - 1)
    index = jnp.minimum(jnp.floor(position), last).astype(jnp.int32)
    weight = position - index.astype(x.dtype)
    return (1 - weight) * table[index] + weight * table[index + 1]


def _lerp_torch(x, table):
    position = x * (KNOTS - 1)
    index = position.floor().clamp(max=KNOTS - 2).long()
    return torch.lerp(table[index], table[index + 1], position - index.to(x.dtype))


def _bce_numpy(x, y):
    return np.maximum(x, 0) - x * y + np.log1p(np.exp(-np.abs(x)))


def _bce_jax(x, y):
    return -y * jax.nn.log_sigmoid(x) - (1 - y) * jax.nn.log_sigmoid(-x)


def _gelu_by_tanh(x):
    return 0.5 * x * (1 + jnp.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def _huber_numpy(x, y):
    error = np.abs(x - y)
    return np.where(error < 1, 0.5 * error * error, error - 0.5)


def _huber_jax(x, y, delta=1.0):
    error = jnp.abs(x - y)
    inner = jnp.minimum(error, delta)
    return inner * (error - 0.5 * inner)


def _cube_root_jax(x):
    def step(carried):
        root, _ = carried
        change = (root - x / root**2) / 3
        return root - change, jnp.max(jnp.abs(change))

    return jax.lax.while_loop(lambda carried: carried[1] > LAST_CHANGE, step, (x, jnp.ones((), x.dtype)))[0]


def _cube_root_torch(x):
    root, largest_change = x, 1.0
    while largest_change > LAST_CHANGE:
        change = (root - x / root**2) / 3
        root, largest_change = root - change, change.abs().max()
    return root


PROGRAMS = (
    Program(
        "cube root, to a tolerance",
        {"x": uniform(1, 8, 5_000)},
        np.cbrt,
        _cube_root_jax,
        _cube_root_torch,
        precisions=FLOAT32,
    ),
    Program(
        "constants in float32",
        {"x": normal(5_000)},
        lambda x: np.tanh(0.1 * x + 0.3),
        lambda x: jnp.tanh(jnp.float32(0.1) * x + jnp.float32(0.3)),
        lambda x: torch.tanh(torch.tensor(0.1) * x + torch.tensor(0.3)),
        precisions=FLOAT32,
    ),
    Program(
        "exp, wide",
        {"x": normal(5_000, scale=4)},
        np.exp,
        jnp.exp,
        torch.exp,
        (
            Fault("expm1 for exp", "all", jnp.expm1),
            Fault("0 for the smallest 1 %", "few", lambda x: jnp.where(x < RARE, 0, jnp.exp(x))),
        ),
        precisions=WITHOUT_FLOAT16,
    ),
    Program(
        "expm1, small",
        {"x": normal(5_000, scale=0.1)},
        np.expm1,
        jnp.expm1,
        torch.special.expm1,
        (Fault("exp(x) - 1", "all", lambda x: jnp.exp(x) - 1),),
    ),
    Program(
        "tan near poles",
        {"x": uniform(-1.57, 1.57, 5_000)},
        np.tan,
        jnp.tan,
        lambda x: torch.sin(x) / torch.cos(x),
        (Fault("+ 1e-3", "all", lambda x: jnp.tan(x) + 1e-3),),
    ),
    Program(
        "log near 1",
        {"x": normal(5_000, scale=0.01, mean=1)},
        np.log,
        jnp.log,
        torch.log,
        (Fault("x - 1", "all", lambda x: x - 1),),
    ),
    Program(
        "gelu",
        {"x": normal(5_000, scale=1.5)},
        lambda x: x * special.ndtr(x),
        lambda x: jax.nn.gelu(x, approximate=False),
        functional.gelu,
        (Fault("tanh for erf", "all", _gelu_by_tanh),),
    ),
    Program(
        "sigmoid cross-entropy",
        {"x": normal(5_000, scale=6), "y": uniform(0, 1, 5_000)},
        _bce_numpy,
        _bce_jax,
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y, reduction="none"),
    ),
    Program(
        "Huber loss",
        {"x": normal(5_000), "y": normal(5_000)},
        _huber_numpy,
        _huber_jax,
        lambda x, y: functional.smooth_l1_loss(x, y, reduction="none"),
        (Fault("bound 1.01 for 1", "few", lambda x, y: _huber_jax(x, y, 1.01)),),
    ),
    Program(
        "difference of products",
        {"a": uniform(0.9, 1.1, 5_000), "b": uniform(0.9, 1.1, 5_000)},
        lambda a, b: a * 3 - b * 3,
        lambda a, b: a * 3 - b * 3,
        lambda a, b: (a - b) * 3,
    ),
    Program(
        "rounding to a grid",
        {"x": normal(5_000), "scale": uniform(0.5, 2, 5_000)},
        lambda x, scale: np.rint(x * scale / STEP) * STEP,
        lambda x, scale: jnp.round(x * scale / STEP) * STEP,
        lambda x, scale: (
            torch.fake_quantize_per_tensor_affine((x * scale).float(), STEP, 0, -(2**15), 2**15).to(x.dtype)
            if x.dtype != torch.float64
            else torch.round(x * scale / STEP) * STEP
        ),
        (Fault("floor for round", "all", lambda x, scale: jnp.floor(x * scale / STEP) * STEP),),
    ),
    Program(
        "interpolation",
        {"x": uniform(0, 1, 5_000), "table": normal(KNOTS)},
        _lerp_numpy,
        _lerp_jax,
        _lerp_torch,
        (Fault("last interval extrapolated", "few", lambda x, table: _lerp_jax(x, table, KNOTS - 3)),),
    ),
    Program(
        "random features",
        {"x": normal(60, 32, scale=2), "w": normal(32, 100), "b": uniform(0, 6.28, 100)},
        lambda x, w, b: np.cos(x @ w + b),
        lambda x, w, b: jnp.cos(x @ w + b),
        lambda x, w, b: torch.cos(torch.addmm(b, x, w)),
        (Fault("sin for cos", "all", lambda x, w, b: jnp.sin(x @ w + b)),),
    ),
)
