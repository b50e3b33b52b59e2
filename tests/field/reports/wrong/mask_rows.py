"""Replace everything in a row from its own index on by -1: a vectorised mask in PyTorch, vmap and where in JAX.

Wrong on JAX's side: the mask starts one column too late (<= for <), so one number of almost every row
differs.
"""


def arrays(rng, rows: int = 2000, columns: int = 256):
    """Draw rows, and the index from which each is replaced."""
    return {"x": rng.standard_normal((rows, columns)), "start": rng.integers(0, columns + 1, rows)}


def jax(x, start):
    """Vectorise a function of one row."""
    import jax
    import jax.numpy as jnp

    return jax.vmap(lambda row, i: jnp.where(jnp.arange(len(row)) <= i, row, -1))(x, start)


def pytorch(x, start):
    """Write into a copy."""
    import torch

    y = x.clone()
    y[torch.arange(x.shape[1]) >= start[:, None]] = -1
    return y
