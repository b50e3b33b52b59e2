"""Sweep a two-dimensional Ising lattice by Metropolis, black and white squares in turn.

Spins are integers; the uniform numbers that decide are drawn in `arrays`. Returns spins, energy and magnetisation.
"""

BETA = 0.44


def arrays(rng, size: int = 64, sweeps: int = 5):
    """Draw spins, and a number for each square, colour and sweep."""
    return {
        "spins": 2 * rng.integers(0, 2, (size, size)) - 1,
        "u": rng.random((sweeps, 2, size, size)),
    }


def jax(spins, u, size):
    """Scan over the sweeps."""
    import jax
    import jax.numpy as jnp

    rows = jnp.arange(size)
    parity = (rows[:, None] + rows[None, :]) % 2

    def neighbours(s):
        return jnp.roll(s, 1, 0) + jnp.roll(s, -1, 0) + jnp.roll(s, 1, 1) + jnp.roll(s, -1, 1)

    def sweep(s, u):
        for colour in (0, 1):
            change = 2 * s * neighbours(s)
            flip = (parity == colour) & (u[colour] < jnp.exp(-BETA * change))
            s = jnp.where(flip, -s, s)
        return s, None

    spins, _ = jax.lax.scan(sweep, spins, u)
    energy = -(spins * (jnp.roll(spins, 1, 0) + jnp.roll(spins, 1, 1))).sum()
    return {"spins": spins, "energy": energy, "magnetisation": spins.sum()}


def pytorch(spins, u, size):
    """Loop over the sweeps."""
    import torch

    rows = torch.arange(size)
    parity = (rows[:, None] + rows[None, :]) % 2

    def neighbours(s):
        return s.roll(1, 0) + s.roll(-1, 0) + s.roll(1, 1) + s.roll(-1, 1)

    for numbers in u:
        for colour in (0, 1):
            change = 2 * spins * neighbours(spins)
            flip = (parity == colour) & (numbers[colour] < torch.exp(-BETA * change))
            spins = torch.where(flip, -spins, spins)
    energy = -(spins * (spins.roll(1, 0) + spins.roll(1, 1))).sum()
    return {"spins": spins, "energy": energy, "magnetisation": spins.sum()}
