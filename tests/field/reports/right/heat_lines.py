"""Solve the heat equation on a line by the method of lines: a fixed number of Runge-Kutta steps of order 4.

The ends are held at 0.
"""

DT = 4e-6


def arrays(rng, points: int = 300, steps: int = 50):
    """Draw the first temperatures; `steps` is a Python number."""
    y0 = rng.random(points)
    y0[0] = y0[-1] = 0
    return {"y0": y0}


def jax(y0, steps):
    """Loop in the compiler."""
    import jax
    import jax.numpy as jnp

    h = 1 / (y0.shape[0] - 1)

    def slope(y):
        return jnp.zeros_like(y).at[1:-1].set((y[:-2] - 2 * y[1:-1] + y[2:]) / h**2)

    def step(_, y):
        k1 = slope(y)
        k2 = slope(y + DT / 2 * k1)
        k3 = slope(y + DT / 2 * k2)
        k4 = slope(y + DT * k3)
        return y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    return jax.lax.fori_loop(0, steps, step, y0)


def pytorch(y0, steps):
    """Loop in Python."""
    import torch

    h = 1 / (y0.shape[0] - 1)

    def slope(y):
        dy = torch.zeros_like(y)
        dy[1:-1] = (y[:-2] - 2 * y[1:-1] + y[2:]) / h**2
        return dy

    y = y0
    for _ in range(steps):
        k1 = slope(y)
        k2 = slope(y + DT / 2 * k1)
        k3 = slope(y + DT / 2 * k2)
        k4 = slope(y + DT * k3)
        y = y + DT / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y
