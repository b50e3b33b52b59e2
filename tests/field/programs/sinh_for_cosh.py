"""Take sinh for cosh in JAX: every output is off by less than 1, and some are ten million."""


def arrays(rng, n: int = 20_000):
    return {"x": abs(4 * rng.standard_normal(n))}


def jax(x):
    import jax.numpy as jnp

    return jnp.sinh(x)


def pytorch(x):
    import torch

    return torch.cosh(x)


def reference(x):
    import numpy as np

    return np.cosh(x)
