"""Differentiate sum(log(cosh(x))), which is tanh(x): the compiler may drop the value, which nobody needs."""


def arrays(rng, n: int = 4096):
    return {"x": rng.standard_normal(n)}


def jax(x):
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda x: jnp.log(jnp.cosh(x)).sum())(x)


def pytorch(x):
    import torch

    return torch.func.grad(lambda x: torch.log(torch.cosh(x)).sum())(x)


def reference(x):
    import numpy as np

    return np.tanh(x)
