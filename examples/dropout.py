"""Drop a tenth of the numbers, by each framework's own generator."""

measure = {"random": "moments"}


def arrays(rng, size: int = 256):
    """Draw numbers and a seed."""
    return {"x": rng.standard_normal((size, size)), "seed": rng.integers(1000)}


def jax(x, seed):
    """Draw by a key."""
    import jax
    import jax.numpy as jnp

    keep = jax.random.bernoulli(jax.random.key(seed), 0.9, x.shape)
    return jnp.where(keep, x / 0.9, 0)


def pytorch(x, seed):
    """Draw by the global generator; the seed is not used."""
    import torch

    return torch.nn.functional.dropout(x, 0.1, training=True)
