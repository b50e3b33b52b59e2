"""Count the iterations until points of the complex plane leave a disc of radius 2, in masked whole-array steps.

Counts are integers; the points are complex, on a grid that the generator shifts a little.
"""


def arrays(rng, size: int = 128, iterations: int = 30):
    """Make a grid over the set, shifted by a random part of a pixel."""
    import numpy as np

    x = np.linspace(-2.0, 0.6, size) + rng.random() * 2.6 / size
    y = np.linspace(-1.2, 1.2, size) + rng.random() * 2.4 / size
    return {"c": x[None, :] + 1j * y[:, None]}


def jax(c, iterations):
    """Loop in the compiler."""
    import jax
    import jax.numpy as jnp

    def body(i, state):
        z, counts = state
        inside = jnp.abs(z) <= 2
        z = jnp.where(inside, z * z + c, z)
        return z, counts + inside

    _, counts = jax.lax.fori_loop(0, iterations, body, (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))
    return counts


def pytorch(c, iterations):
    """Loop in Python."""
    import torch

    z = torch.zeros_like(c)
    counts = torch.zeros(c.shape, dtype=torch.int32)
    for _ in range(iterations):
        inside = z.abs() <= 2
        z = torch.where(inside, z * z + c, z)
        counts += inside
    return counts
