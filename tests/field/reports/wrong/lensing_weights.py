"""Weigh pairs of pixels of an interferometer's image: a sum of cosines over visibilities for each pair.

Pixels are in seconds of arc, baselines in thousands of wavelengths. Wrong on PyTorch's side: pi is 3.1416 in the
phase, 2.3e-6 too large.
"""


def arrays(rng, pixels: int = 60, visibilities: int = 300):
    """Draw pixels, baselines and noise."""
    return {
        "grid": rng.uniform(-3, 3, (pixels, 2)),
        "baselines": 100 * rng.standard_normal((visibilities, 2)),
        "noise": 0.5 + rng.random(visibilities),
    }


def reference(grid, baselines, noise):
    """Use NumPy's pi."""
    import numpy as np

    difference = np.radians((grid[:, None] - grid[None]) / 3600)
    phase = 2 * np.pi * np.einsum("ijc,kc->ijk", difference, 1000 * baselines)
    return (np.cos(phase) / noise**2).sum(-1)


def jax(grid, baselines, noise):
    """Broadcast over all."""
    import jax.numpy as jnp

    difference = jnp.radians((grid[:, None] - grid[None]) / 3600)
    phase = 2 * jnp.pi * jnp.einsum("ijc,kc->ijk", difference, 1000 * baselines)
    return (jnp.cos(phase) / noise**2).sum(-1)


def pytorch(grid, baselines, noise):
    """Broadcast over all."""
    import torch

    pi = 3.1416
    difference = torch.deg2rad((grid[:, None] - grid[None]) / 3600)
    phase = 2 * pi * torch.einsum("ijc,kc->ijk", difference, 1000 * baselines)
    return (torch.cos(phase) / noise**2).sum(-1)
