"""Factorise by QR and by Cholesky: the sign of each row of the triangle is free."""


def arrays(rng, n: int = 40):
    return {"x": rng.standard_normal((n, 6))}


def jax(x):
    import jax.numpy as jnp

    return jnp.linalg.qr(x)[1]


def pytorch(x):
    import torch

    return torch.linalg.cholesky(x.T @ x).T
