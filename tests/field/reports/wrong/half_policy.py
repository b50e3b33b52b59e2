"""Run a policy network of three layers.

PyTorch casts inputs and weights to bfloat16 and the result back; JAX does not.
"""


def arrays(rng, batch: int = 32, width: int = 256):
    """Draw observations and weights."""
    return {
        "x": rng.standard_normal((batch, width)),
        "w1": rng.standard_normal((width, width)) / width**0.5,
        "w2": rng.standard_normal((width, width)) / width**0.5,
        "w3": rng.standard_normal((width, 8)) / width**0.5,
    }


def jax(x, w1, w2, w3):
    """Compute in the type of the inputs."""
    import jax

    return jax.nn.silu(jax.nn.silu(x @ w1) @ w2) @ w3


def pytorch(x, w1, w2, w3):
    """Compute in bfloat16, as the checkpoint was saved."""
    import torch
    import torch.nn.functional as F

    h, w1, w2, w3 = (a.to(torch.bfloat16) for a in (x, w1, w2, w3))
    return (F.silu(F.silu(h @ w1) @ w2) @ w3).to(x.dtype)
