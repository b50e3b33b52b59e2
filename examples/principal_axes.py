"""Find principal axes by eigenvectors or by singular vectors; the sign of each axis is free."""


def arrays(rng, points: int = 500):
    """Draw points that vary most along the first coordinate."""
    return {"x": rng.standard_normal((points, 6)) * [6, 5, 4, 3, 2, 1]}


def jax(x):
    """Use eigh, whose eigenvalues ascend."""
    import jax.numpy as jnp

    x = x - x.mean(0)
    return jnp.linalg.eigh(x.T @ x)[1][:, ::-1]


def pytorch(x):
    """Use the SVD, whose singular values descend."""
    import torch

    x = x - x.mean(0)
    return torch.linalg.svd(x, full_matrices=False)[2].T


def canonical(axes):
    """Let the largest number of each axis be positive."""
    import numpy as np

    largest = axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]
    return axes * np.sign(largest)
