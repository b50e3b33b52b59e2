"""Write out softmax over rows."""


def arrays(rng, rows: int = 1024, columns: int = 1024):
    """Draw standard normal numbers; both functions get the same arrays."""
    return {"x": rng.standard_normal((rows, columns))}


def jax(x):
    """Compute softmax as in the first script."""
    import jax.numpy as jnp

    shifted = jnp.exp(x - x.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)


def pytorch(x):
    """Compute softmax as in the second script."""
    import torch

    shifted = torch.exp(x - x.amax(dim=-1, keepdim=True))
    return shifted / shifted.sum(dim=-1, keepdim=True)
