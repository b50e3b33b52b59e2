"""Compute a Hessian-vector product in three ways: reverse over reverse, forward over reverse, and JAX's.

The function is the sum of squares of tanh(w x).
"""

import jax
import jax.numpy as jnp
import torch
from torch.func import grad, jvp, vjp

import accelbench


def rev_rev(x, v, w):
    """Pull v back through the gradient."""
    _, pull = vjp(grad(lambda x: torch.tanh(w @ x).square().sum()), x)
    return pull(v)[0]


def fwd_rev(x, v, w):
    """Push v forward through the gradient."""
    return jvp(grad(lambda x: torch.tanh(w @ x).square().sum()), (x,), (v,))[1]


def jax_fwd_rev(x, v, w):
    """The same in JAX."""
    return jax.jvp(jax.grad(lambda x: jnp.square(jnp.tanh(w @ x)).sum()), (x,), (v,))[1]


def draw(rng):
    n = 400
    return {
        "x": rng.standard_normal(n),
        "v": rng.standard_normal(n),
        "w": rng.standard_normal((n, n)) / n**0.5,
    }


if __name__ == "__main__":
    found = accelbench.compare(pytorch=rev_rev, pytorch_fwd_rev=fwd_rev, jax=jax_fwd_rev, arrays=draw, name="hvp-modes")
    print(found)
