"""Iterate the value function of the neoclassical growth model on a grid of capital; return values and the policy.

Consumption that would be negative has utility minus infinity.
"""

ALPHA, BETA, DEPRECIATION = 0.36, 0.95, 0.1


def arrays(rng, size: int = 200, iterations: int = 60):
    """Draw a grid of capital, and productivities of the points."""
    import numpy as np

    return {"k": np.sort(0.5 + 7 * rng.random(size)), "z": 1 + 0.05 * rng.standard_normal(size)}


def jax(k, z, iterations):
    """Loop in the compiler."""
    import jax
    import jax.numpy as jnp

    resources = z * k**ALPHA + (1 - DEPRECIATION) * k
    consumption = resources[:, None] - k[None, :]
    utility = jnp.where(consumption > 0, jnp.log(consumption), -jnp.inf)

    def bellman(_, v):
        return (utility + BETA * v[None, :]).max(axis=1)

    v = jax.lax.fori_loop(0, iterations, bellman, jnp.zeros_like(k))
    policy = (utility + BETA * v[None, :]).argmax(axis=1)
    return {"value": v, "policy": policy, "next": k[policy]}


def pytorch(k, z, iterations):
    """Loop in Python."""
    import torch

    resources = z * k**ALPHA + (1 - DEPRECIATION) * k
    consumption = resources[:, None] - k[None, :]
    utility = torch.where(consumption > 0, torch.log(consumption), -torch.inf)
    v = torch.zeros_like(k)
    for _ in range(iterations):
        v = (utility + BETA * v[None, :]).max(dim=1).values
    policy = (utility + BETA * v[None, :]).argmax(dim=1)
    return {"value": v, "policy": policy, "next": k[policy]}
