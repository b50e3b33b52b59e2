"""Compute the log marginal likelihood of a Gaussian process, for data on a grid of times: JAX against PyTorch.

A notebook cell. Wrong on PyTorch's side: the Cholesky factor is cached by the number of points, so calls with other
times or another length scale get the first one.
"""

import math

import jax.numpy as jnp
import jax.scipy.linalg
import numpy as np
import torch

import accelbench

FACTORS = {}


def draw(rng, points=200):
    """Draw times, observations and a length scale."""
    t = np.sort(10 * rng.random(points))
    return {"t": t, "y": np.sin(t) + 0.3 * rng.standard_normal(points), "scale": 0.5 + rng.random()}


def jax_likelihood(t, y, scale):
    n = len(t)
    k = jnp.exp(-0.5 * ((t[:, None] - t[None]) / scale) ** 2) + 0.1 * jnp.eye(n)
    factor = jnp.linalg.cholesky(k)
    alpha = jax.scipy.linalg.cho_solve((factor, True), y)
    return -0.5 * y @ alpha - jnp.log(jnp.diagonal(factor)).sum() - 0.5 * n * math.log(2 * math.pi)


def torch_likelihood(t, y, scale):
    n = len(t)
    if n not in FACTORS:
        k = torch.exp(-0.5 * ((t[:, None] - t[None]) / scale) ** 2) + 0.1 * torch.eye(n, dtype=t.dtype)
        FACTORS[n] = torch.linalg.cholesky(k)
    factor = FACTORS[n]
    alpha = torch.cholesky_solve(y[:, None], factor)[:, 0]
    return -0.5 * y @ alpha - torch.log(torch.diagonal(factor)).sum() - 0.5 * n * math.log(2 * math.pi)


if __name__ == "__main__":
    found = accelbench.compare(jax=jax_likelihood, pytorch=torch_likelihood, arrays=draw)
    print(found)
