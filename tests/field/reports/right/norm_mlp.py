"""Normalise rows by their root mean square, and apply a layer with the exact GELU, in bfloat16.

Both sides have the same epsilon and neither uses the tanh approximation.
"""

EPSILON = 1e-6


def arrays(rng, rows: int = 128, width: int = 256):
    """Draw rows and weights."""
    return {
        "x": rng.standard_normal((rows, width)),
        "scale": 1 + 0.1 * rng.standard_normal(width),
        "w1": rng.standard_normal((width, 4 * width)) / width**0.5,
        "b1": 0.1 * rng.standard_normal(4 * width),
        "w2": rng.standard_normal((4 * width, width)) / (4 * width) ** 0.5,
    }


def jax(x, scale, w1, b1, w2):
    """Write out the norm; jax.nn has the GELU."""
    import jax
    import jax.numpy as jnp

    normed = x * jax.lax.rsqrt(jnp.mean(jnp.square(x), axis=-1, keepdims=True) + EPSILON) * scale
    return x + jax.nn.gelu(normed @ w1 + b1, approximate=False) @ w2


def pytorch(x, scale, w1, b1, w2):
    """Use PyTorch's functions."""
    import torch.nn.functional as F

    normed = F.rms_norm(x, (x.shape[-1],), scale, EPSILON)
    return x + F.gelu(normed @ w1 + b1) @ w2
