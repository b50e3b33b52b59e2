"""Attention scores of one query, call by call: log-probabilities, with -inf where the mask is."""

measure = {"protocol": "latency", "unit": "query"}
operations = {"products": 1}


def arrays(rng, keys: int = 512, width: int = 64):
    """Draw a query, keys and a mask."""
    return {
        "q": rng.standard_normal((1, width)),
        "k": rng.standard_normal((keys, width)),
        "keep": rng.random(keys) < 0.5,
    }


def cost(keys, width, float_bytes):
    """Count the product alone, and the keys that it reads."""
    return {"flops": 2 * keys * width, "bytes": keys * width * float_bytes}


def jax(q, k, keep):
    """Use JAX."""
    import jax
    import jax.numpy as jnp

    return jax.nn.log_softmax(jnp.where(keep, q @ k.T / 8, -jnp.inf))


def pytorch(q, k, keep):
    """Use PyTorch."""
    import torch

    return torch.log_softmax((q @ k.T / 8).masked_fill(~keep, -torch.inf), -1)
