"""Weights of attention for sequences of several lengths: a call for each, compiled anew for every new length."""

LENGTHS = (64, 100, 64, 256)
measure = {"unit": "token", "units": LENGTHS}


def arrays(rng, width: int = 32):
    """Draw one batch for each call."""
    return [{"x": rng.standard_normal((length, width))} for length in LENGTHS]


def jax(x):
    """Use JAX."""
    import jax

    return jax.nn.softmax(x @ x.T / 6)


def pytorch(x):
    """Use PyTorch."""
    import torch

    return torch.softmax(x @ x.T / 6, -1)
