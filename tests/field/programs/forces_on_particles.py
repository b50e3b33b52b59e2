"""Add forces of pairs to the particles that they act on: a scatter."""


def arrays(rng, pairs: int = 5000):
    return {"force": rng.standard_normal((pairs, 3)), "first": rng.integers(0, 100, pairs)}


def jax(force, first):
    import jax.numpy as jnp

    return jnp.zeros((100, 3), force.dtype).at[first].add(force)


def pytorch(force, first):
    import torch

    return torch.zeros(100, 3, dtype=force.dtype).scatter_add_(0, first[:, None].expand(-1, 3), force)
