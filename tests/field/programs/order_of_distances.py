"""Order points by distance from a centre: some are equal in float32, and PyTorch does not sort stably."""


def arrays(rng, rows: int = 20, n: int = 5000):
    return {"x": rng.random((rows, n)), "centre": rng.random((rows, 1))}


def jax(x, centre):
    import jax.numpy as jnp

    return jnp.argsort(abs(x - centre), axis=-1)


def pytorch(x, centre):
    import torch

    return torch.argsort(abs(x - centre), dim=-1)
