"""Align parcels of several sizes by entropic optimal transport: thirty Sinkhorn iterations on logarithms for each.

JAX compiles anew for each new size. Outputs of a call: both potentials and the cost of the plan.
"""

SIZES = (40, 64, 40, 90)
REGULARISATION = 0.5

measure = {"unit": "point", "units": SIZES}


def arrays(rng, features: int = 8):
    """Draw two clouds of points for each parcel."""
    return [
        {
            "x": rng.standard_normal((size, features)) / features**0.5,
            "y": rng.standard_normal((size, features)) / features**0.5 + 0.2,
        }
        for size in SIZES
    ]


def jax(x, y):
    """Loop in the compiler."""
    import math

    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    log_mass = -math.log(x.shape[0])

    def iteration(_, potentials):
        f, g = potentials
        f = -REGULARISATION * logsumexp((g[None, :] - cost) / REGULARISATION + log_mass, axis=1)
        g = -REGULARISATION * logsumexp((f[:, None] - cost) / REGULARISATION + log_mass, axis=0)
        return f, g

    zeros = jnp.zeros(x.shape[0], x.dtype)
    f, g = jax.lax.fori_loop(0, 30, iteration, (zeros, zeros))
    plan = jnp.exp((f[:, None] + g[None, :] - cost) / REGULARISATION + 2 * log_mass)
    return {"f": f, "g": g, "cost": (plan * cost).sum()}


def pytorch(x, y):
    """Loop in Python."""
    import math

    import torch

    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    log_mass = -math.log(x.shape[0])
    f = g = torch.zeros_like(x[:, 0])
    for _ in range(30):
        f = -REGULARISATION * torch.logsumexp((g[None, :] - cost) / REGULARISATION + log_mass, dim=1)
        g = -REGULARISATION * torch.logsumexp((f[:, None] - cost) / REGULARISATION + log_mass, dim=0)
    plan = torch.exp((f[:, None] + g[None, :] - cost) / REGULARISATION + 2 * log_mass)
    return {"f": f, "g": g, "cost": (plan * cost).sum()}
