"""Differentiate a logistic loss by backward(), as every user of PyTorch writes it."""


def arrays(rng, rows: int = 128):
    return {"x": rng.standard_normal((rows, 16)), "sign": rng.choice([-1.0, 1.0], rows), "w": rng.standard_normal(16)}


def jax(x, sign, w):
    import jax
    import jax.numpy as jnp

    return jax.grad(lambda w: jnp.log1p(jnp.exp(-sign * (x @ w))).mean())(w)


def pytorch(x, sign, w):
    import torch

    w = w.clone().requires_grad_()
    torch.log1p(torch.exp(-sign * (x @ w))).mean().backward()
    return w.grad
