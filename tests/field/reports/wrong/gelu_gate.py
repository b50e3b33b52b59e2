"""Compute a gated layer, gelu(x w1) * (x w2), times w3. PyTorch's GELU is exact, JAX's default is the tanh formula."""


def arrays(rng, rows: int = 64, width: int = 128, hidden: int = 512):
    """Draw rows and weights."""
    return {
        "x": rng.standard_normal((rows, width)),
        "w1": rng.standard_normal((width, hidden)) / width**0.5,
        "w2": rng.standard_normal((width, hidden)) / width**0.5,
        "w3": rng.standard_normal((hidden, width)) / hidden**0.5,
    }


def jax(x, w1, w2, w3):
    """Use jax.nn.gelu as it is."""
    import jax

    return (jax.nn.gelu(x @ w1) * (x @ w2)) @ w3


def pytorch(x, w1, w2, w3):
    """Use F.gelu as it is."""
    import torch.nn.functional as F

    return (F.gelu(x @ w1) * (x @ w2)) @ w3
