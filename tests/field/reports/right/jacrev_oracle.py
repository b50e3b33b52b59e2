"""Compute the gradient of sums of squares: by hand, by vmap(jacrev) in PyTorch, and by vmap(jacrev) in JAX.

A notebook cell; two of the three programs are PyTorch's.
"""

import jax
import numpy as np
from torch.func import jacrev, vmap

import accelbench


def f(x):
    return (x**2).sum(-1)


def by_hand(x):
    return 2 * x


def by_jacrev(x):
    return vmap(jacrev(f))(x)


def by_jax(x):
    return jax.vmap(jax.jacrev(f))(x)


found = accelbench.compare(
    pytorch=by_hand,
    pytorch_jacrev=by_jacrev,
    jax=by_jax,
    arrays={"x": np.random.default_rng(0).random((1000, 500))},
)
print(found)
