"""Define programs whose outputs depend on comparisons: indices, integers, booleans and largest numbers."""

import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch.nn import functional

from benchmarks.parity.program import Fault, Program, normal, uniform

SCORES = {"x": normal(400, 64), "w": normal(64, 60)}
BEST = 8


def _quantised_numpy(x, w):
    return np.clip(np.rint(x @ w), -128, 127).astype(np.int8)


def _quantised_jax(x, w, convert=jnp.round):
    return jnp.clip(convert(x @ w), -128, 127).astype(jnp.int8)


def _pool_numpy(x, scale):
    return np.max(np.max((x * scale).reshape(4, 8, 12, 2, 12, 2), -1), 3)


def _pool_jax(x, scale):
    return jax.lax.reduce_window(x * scale, -jnp.inf, jax.lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def _bins_numpy(x, edges):
    return np.sum(x[:, None] >= edges, -1)


PROGRAMS = (
    Program(
        "argmax",
        SCORES,
        lambda x, w: np.argmax(x @ w, -1),
        lambda x, w: jnp.argmax(x @ w, -1),
        lambda x, w: torch.argmax(x @ w, -1),
        (
            Fault("last class left out", "few", lambda x, w: jnp.argmax((x @ w)[:, :-1], -1)),
            Fault("last row repeats the one before", "one", lambda x, w: jnp.argmax(x.at[-1].set(x[-2]) @ w, -1)),
        ),
    ),
    Program(
        "8 best, their indices",
        SCORES,
        lambda x, w: np.argsort(-(x @ w), -1, kind="stable")[:, :BEST],
        lambda x, w: jax.lax.top_k(x @ w, BEST)[1],
        lambda x, w: torch.topk(x @ w, BEST).indices,
        (Fault("first 50 classes only", "all", lambda x, w: jax.lax.top_k((x @ w)[:, :50], BEST)[1]),),
    ),
    Program(
        "8 best, their scores",
        SCORES,
        lambda x, w: -np.sort(-(x @ w), -1)[:, :BEST],
        lambda x, w: jax.lax.top_k(x @ w, BEST)[0],
        lambda x, w: torch.topk(x @ w, BEST).values,
        (Fault("last class left out", "few", lambda x, w: jax.lax.top_k((x @ w)[:, :-1], BEST)[0]),),
    ),
    Program(
        "argsort",
        {"x": uniform(0, 1, 3, 2000)},
        lambda x: np.argsort(x, -1, kind="stable"),
        lambda x: jnp.argsort(x, -1),
        lambda x: torch.argsort(x, dim=-1),
        (Fault("descending", "all", lambda x: jnp.argsort(-x, -1)),),
    ),
    Program(
        "int8 of products",
        {"x": normal(72, 72), "w": normal(72, 72)},
        _quantised_numpy,
        _quantised_jax,
        lambda x, w: torch.clamp(torch.round(x @ w), -128, 127).to(torch.int8),
        (Fault("floor for round", "all", lambda x, w: _quantised_jax(x, w, jnp.floor)),),
    ),
    Program(
        "positive products",
        {"x": normal(72, 72), "w": normal(72, 72)},
        lambda x, w: x @ w > 0,
        lambda x, w: x @ w > 0,
        lambda x, w: torch.gt(x @ w, 0),
        (Fault("last term left out", "few", lambda x, w: x[:, :-1] @ w[:-1] > 0),),
    ),
    Program(
        "bins",
        {"x": normal(5_000), "edges": lambda rng: np.sort(rng.normal(size=30))},
        _bins_numpy,
        lambda x, edges: jnp.searchsorted(edges, x, side="right"),
        lambda x, edges: torch.bucketize(x, edges, right=True),
        (Fault("last edge left out", "few", lambda x, edges: jnp.searchsorted(edges[:-1], x, side="right")),),
    ),
    Program(
        "max-pooling",
        {"x": normal(4, 8, 24, 24), "scale": uniform(0.5, 1.5, 24)},
        _pool_numpy,
        _pool_jax,
        lambda x, scale: functional.max_pool2d(x * scale, 2),
    ),
)
