"""Define programs with sums of many terms: means, variances, running sums, segments and windows."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.program import FLOAT32, Fault, Program, integers, normal, uniform

TERMS = 2**18
WINDOW = 25
SEGMENTS = 20


def _variance_numpy(x):
    deviation = x - np.mean(x, -1, keepdims=True)
    return np.mean(deviation * deviation, -1)


def _softmax_numpy(x):
    powers = np.exp(x - np.max(x, -1, keepdims=True))
    return powers / np.sum(powers, -1, keepdims=True)


def _softmax_jax(x, epsilon=0.0):
    powers = jnp.exp(x - x.max(-1, keepdims=True))
    return powers / (powers.sum(-1, keepdims=True) + epsilon)


def _logsumexp_numpy(x):
    largest = np.max(x, -1, keepdims=True)
    return np.log(np.sum(np.exp(x - largest), -1)) + largest[..., 0]


def _cumsum_by_scan(x):
    def add(total, row):
        total = total + row
        return total, total

    return jax.lax.scan(add, jnp.zeros(x.shape[1:], x.dtype), x)[1]


def _segments_numpy(index, x):
    sums = np.zeros(SEGMENTS, x.dtype).view(type(x))
    np.add.at(sums, index, x)
    return sums


def _segments_jax(index, x):
    return jax.ops.segment_sum(x, index, SEGMENTS)


def _window_numpy(x):
    length = x.shape[0] - WINDOW + 1
    total = x[:length]
    for start in range(1, WINDOW):
        total = total + x[start : start + length]
    return total / WINDOW


def _window_jax(x):
    return jnp.convolve(x, jnp.full(WINDOW, 1 / WINDOW, x.dtype), "valid")


def _window_torch(x):
    return functional.avg_pool1d(x[None, None], WINDOW, 1)[0, 0]


def _window_by_cumsum_jax(x):
    sums = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.cumsum(x)])
    return (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW


def _window_by_cumsum_torch(x):
    sums = functional.pad(torch.cumsum(x, 0), (1, 0))
    return (sums[WINDOW:] - sums[:-WINDOW]) / WINDOW


PROGRAMS = (
    Program(
        "mean of squares",
        {"x": normal(TERMS)},
        lambda x: np.mean(x * x),
        lambda x: jnp.mean(jnp.square(x)),
        lambda x: torch.dot(x, x) / x.numel(),
        (
            Fault("100 of 262,144 terms left out", "all", lambda x: jnp.sum(jnp.square(x[100:])) / TERMS),
            Fault("1 of 262,144 terms left out", "all", lambda x: jnp.sum(jnp.square(x[1:])) / TERMS),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "row means",
        {"x": uniform(0, 1, 500, 400)},
        lambda x: np.mean(x, -1),
        lambda x: jnp.mean(x, -1),
        lambda x: x.sum(-1) / x.shape[-1],
        (Fault("last term of the last row left out", "one", lambda x: jnp.mean(x.at[-1, -1].set(0), -1)),),
    ),
    Program(
        "variance",
        {"x": normal(500, 400, mean=3)},
        _variance_numpy,
        lambda x: jnp.var(x, -1),
        lambda x: torch.var(x, -1, correction=0),
        (Fault("divisor n - 1", "all", lambda x: jnp.var(x, -1, ddof=1)),),
    ),
    Program(
        "variance in one pass",
        {"x": normal(500, 400, mean=3)},
        _variance_numpy,
        lambda x: jnp.mean(x * x, -1) - jnp.mean(x, -1) ** 2,
        lambda x: x.square().mean(-1) - x.mean(-1).square(),
        precisions=FLOAT32,
        less_exact=True,
    ),
    Program(
        "softmax",
        {"x": normal(50, 100, scale=3)},
        _softmax_numpy,
        _softmax_jax,
        lambda x: torch.softmax(x, -1),
        (
            Fault("1e-3 added to the divisor", "all", lambda x: _softmax_jax(x, 1e-3)),
            Fault(
                "over the wrong axis in the last row",
                "few",
                lambda x: _softmax_jax(x).at[-1].set(_softmax_jax(x.T).T[-1]),
            ),
        ),
    ),
    Program(
        "logsumexp",
        {"x": normal(1000, 64, scale=2)},
        _logsumexp_numpy,
        lambda x: jax.scipy.special.logsumexp(x, -1),
        lambda x: torch.logsumexp(x, -1),
        (Fault("first term left out", "all", lambda x: jax.scipy.special.logsumexp(x[:, 1:], -1)),),
    ),
    Program(
        "cumulative sum",
        {"x": uniform(0, 1, 5000, 1)},
        lambda x: np.cumsum(x, 0),
        lambda x: jnp.cumsum(x, 0),
        lambda x: torch.cumsum(x, 0),
        (
            Fault("exclusive", "all", lambda x: jnp.cumsum(x, 0) - x),
            Fault("last row repeats the one before", "few", lambda x: jnp.cumsum(x.at[-1].set(0), 0)),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "cumulative sum, by scan",
        {"x": uniform(0, 1, 5000, 1)},
        lambda x: np.cumsum(x, 0),
        _cumsum_by_scan,
        lambda x: torch.stack(list(x.unbind())).cumsum(0),
        precisions=FLOAT32,
    ),
    Program(
        "compound growth",
        {"x": normal(1000, 4, scale=0.02)},
        lambda x: np.cumprod(1 + x, 0),
        lambda x: jnp.cumprod(1 + x, 0),
        lambda x: torch.exp(torch.cumsum(torch.log1p(x), 0)),
        (Fault("simple for compound", "all", lambda x: 1 + jnp.cumsum(x, 0)),),
        precisions=FLOAT32,
    ),
    Program(
        "segment sums",
        {"index": integers(SEGMENTS, 20_000), "x": uniform(0, 1, 20_000)},
        _segments_numpy,
        _segments_jax,
        lambda index, x: torch.zeros(SEGMENTS, dtype=x.dtype).index_add_(0, index, x),
        (
            Fault("1 term left out", "one", lambda index, x: _segments_jax(index[1:], x[1:])),
            Fault("last segment dropped", "one", lambda index, x: _segments_jax(index, x).at[-1].set(0)),
        ),
        precisions=FLOAT32,
    ),
    Program(
        "moving average",
        {"x": normal(5_000, mean=1)},
        _window_numpy,
        _window_jax,
        _window_torch,
        (
            Fault("last window too short", "one", lambda x: _window_jax(x.at[-1].set(0))),
            Fault("window 24 for 25", "all", lambda x: _window_jax(x) - x[: x.shape[0] - WINDOW + 1] / WINDOW),
        ),
    ),
    Program(
        "moving average, by cumulative sums",
        {"x": normal(5_000, mean=1)},
        _window_numpy,
        _window_by_cumsum_jax,
        _window_by_cumsum_torch,
        precisions=FLOAT32,
        less_exact=True,
    ),
)
