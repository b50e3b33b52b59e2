"""Compute the loss of a physics-informed network for the heat equation, and its gradient in the weights.

The residual u_t - u_xx needs second derivatives in x; the loss is then differentiated once more in the weights. JAX
nests grad inside vmap; PyTorch uses autograd.grad with create_graph, and backward().
"""

import math


def arrays(rng, points: int = 256, hidden: int = 32):
    """Draw points inside and at the start, and weights."""
    return {
        "x": rng.random((points, 1)),
        "t": rng.random((points, 1)),
        "x0": rng.random((points // 4, 1)),
        "w1": rng.standard_normal((2, hidden)),
        "b1": rng.standard_normal(hidden),
        "w2": rng.standard_normal((hidden, hidden)) / hidden**0.5,
        "b2": 0.1 * rng.standard_normal(hidden),
        "w3": rng.standard_normal((hidden, 1)) / hidden**0.5,
    }


def jax(x, t, x0, w1, b1, w2, b2, w3):
    """Differentiate a scalar function of one point, and vectorise it."""
    import jax
    import jax.numpy as jnp

    def u(weights, x, t):
        h = jnp.tanh(jnp.stack([x, t]) @ weights["w1"] + weights["b1"])
        h = jnp.tanh(h @ weights["w2"] + weights["b2"])
        return (h @ weights["w3"])[0]

    u_t = jax.grad(u, argnums=2)
    u_xx = jax.grad(jax.grad(u, argnums=1), argnums=1)

    def loss(weights):
        residual = jax.vmap(lambda x, t: u_t(weights, x, t) - u_xx(weights, x, t))(x[:, 0], t[:, 0])
        start = jax.vmap(lambda x: u(weights, x, jnp.zeros_like(x)))(x0[:, 0])
        return (residual**2).mean() + ((start - jnp.sin(math.pi * x0[:, 0])) ** 2).mean()

    value, gradients = jax.value_and_grad(loss)({"w1": w1, "b1": b1, "w2": w2, "b2": b2, "w3": w3})
    return {"loss": value, "gradients": gradients}


def pytorch(x, t, x0, w1, b1, w2, b2, w3):
    """Differentiate sums over all points."""
    import torch

    w1, b1, w2, b2, w3 = (w.clone().requires_grad_() for w in (w1, b1, w2, b2, w3))
    x, t = x.clone().requires_grad_(), t.clone().requires_grad_()

    def network(x, t):
        h = torch.tanh(torch.cat([x, t], dim=1) @ w1 + b1)
        return torch.tanh(h @ w2 + b2) @ w3

    u = network(x, t)
    u_x, u_t = torch.autograd.grad(u, (x, t), torch.ones_like(u), create_graph=True)
    (u_xx,) = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)
    start = network(x0, torch.zeros_like(x0))
    loss = ((u_t - u_xx) ** 2).mean() + ((start - torch.sin(math.pi * x0)) ** 2).mean()
    loss.backward()
    gradients = {"w1": w1.grad, "b1": b1.grad, "w2": w2.grad, "b2": b2.grad, "w3": w3.grad}
    return {"loss": loss.detach(), "gradients": gradients}
