"""Simulate prices and variances under the Heston model, step by step, for many paths.

The normal numbers are drawn in `arrays`, so both sides walk the same paths. JAX scans, PyTorch loops and stacks.
"""

S0, V0, R, KAPPA, THETA, SIGMA, RHO, YEARS = 100.0, 0.04, 0.03, 1.5, 0.05, 0.4, -0.6, 1.0


def arrays(rng, steps: int = 100, paths: int = 2000):
    """Draw two correlated normal numbers for each step and path."""
    z = rng.standard_normal((2, steps, paths))
    return {"z1": z[0], "z2": RHO * z[0] + (1 - RHO**2) ** 0.5 * z[1]}


def jax(z1, z2, steps):
    """Scan over the steps, and keep every step's prices and variances."""
    import jax
    import jax.numpy as jnp

    dt = YEARS / steps

    def step(carry, z):
        s, v = carry
        za, zb = z
        s_next = s * jnp.exp((R - 0.5 * v) * dt + jnp.sqrt(v * dt) * za)
        v_next = jnp.maximum(v + KAPPA * (THETA - v) * dt + SIGMA * jnp.sqrt(v * dt) * zb, 0.0)
        return (s_next, v_next), (s_next, v_next)

    start = jnp.full_like(z1[0], S0), jnp.full_like(z1[0], V0)
    _, (prices, variances) = jax.lax.scan(step, start, (z1, z2))
    return {"prices": prices, "variances": variances}


def pytorch(z1, z2, steps):
    """Loop over the steps."""
    import torch

    dt = YEARS / steps
    s, v = torch.full_like(z1[0], S0), torch.full_like(z1[0], V0)
    prices, variances = [], []
    for za, zb in zip(z1, z2):
        s_next = s * torch.exp((R - 0.5 * v) * dt + torch.sqrt(v * dt) * za)
        v = torch.clamp(v + KAPPA * (THETA - v) * dt + SIGMA * torch.sqrt(v * dt) * zb, min=0.0)
        s = s_next
        prices.append(s)
        variances.append(v)
    return {"prices": torch.stack(prices), "variances": torch.stack(variances)}
