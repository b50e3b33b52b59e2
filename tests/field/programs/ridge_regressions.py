"""Solve many small ridge regressions by their normal equations."""


def arrays(rng, problems: int = 200):
    return {"a": rng.standard_normal((problems, 12, 4)), "b": rng.standard_normal((problems, 12, 1))}


def jax(a, b):
    import jax.numpy as jnp

    return jnp.linalg.solve(a.mT @ a + jnp.eye(4, dtype=a.dtype), a.mT @ b)


def pytorch(a, b):
    import torch

    return torch.linalg.solve(a.mT @ a + torch.eye(4, dtype=a.dtype), a.mT @ b)


def reference(a, b):
    import numpy as np

    return np.linalg.solve(a.mT @ a + np.eye(4), a.mT @ b)
