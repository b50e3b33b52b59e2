"""Solve entropic optimal transport between two point clouds by a fixed number of Sinkhorn steps in the log domain.

Returns the cost and both potentials.
"""

EPSILON = 0.1


def arrays(rng, points: int = 128, dimension: int = 3, steps: int = 50):
    """Draw two clouds, and weights that sum to 1."""
    a, b = rng.random(points) + 0.5, rng.random(points) + 0.5
    return {
        "x": rng.random((points, dimension)),
        "y": rng.random((points, dimension)) + 0.2,
        "a": a / a.sum(),
        "b": b / b.sum(),
    }


def reference(x, y, a, b, steps):
    """Use NumPy and SciPy."""
    import numpy as np
    from scipy.special import logsumexp

    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    f, g = np.zeros_like(a), np.zeros_like(b)
    for _ in range(steps):
        f = EPSILON * (np.log(a) - logsumexp((g[None, :] - cost) / EPSILON, axis=1))
        g = EPSILON * (np.log(b) - logsumexp((f[:, None] - cost) / EPSILON, axis=0))
    plan = np.exp((f[:, None] + g[None, :] - cost) / EPSILON)
    return {"cost": (plan * cost).sum(), "f": f, "g": g}


def jax(x, y, a, b, steps):
    """Loop in the compiler."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    log_a, log_b = jnp.log(a), jnp.log(b)

    def step(_, potentials):
        f, g = potentials
        f = EPSILON * (log_a - logsumexp((g[None, :] - cost) / EPSILON, axis=1))
        g = EPSILON * (log_b - logsumexp((f[:, None] - cost) / EPSILON, axis=0))
        return f, g

    f, g = jax.lax.fori_loop(0, steps, step, (jnp.zeros_like(a), jnp.zeros_like(b)))
    plan = jnp.exp((f[:, None] + g[None, :] - cost) / EPSILON)
    return {"cost": (plan * cost).sum(), "f": f, "g": g}


def pytorch(x, y, a, b, steps):
    """Loop in Python."""
    import torch

    cost = ((x[:, None] - y[None]) ** 2).sum(-1)
    log_a, log_b = a.log(), b.log()
    f, g = torch.zeros_like(a), torch.zeros_like(b)
    for _ in range(steps):
        f = EPSILON * (log_a - torch.logsumexp((g[None, :] - cost) / EPSILON, dim=1))
        g = EPSILON * (log_b - torch.logsumexp((f[:, None] - cost) / EPSILON, dim=0))
    plan = torch.exp((f[:, None] + g[None, :] - cost) / EPSILON)
    return {"cost": (plan * cost).sum(), "f": f, "g": g}
