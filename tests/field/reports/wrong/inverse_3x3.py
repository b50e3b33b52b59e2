"""Invert many 3 x 3 matrices: torch.linalg.inv, and cofactors by cross products in PyTorch and JAX.

The matrices are covariances plus a small rotation, so they are nearly symmetric. Wrong in `pytorch_cofactors`: the
matrix of cofactors is not transposed, which makes no difference where a matrix is symmetric.
"""


def arrays(rng, matrices: int = 5000):
    """Draw well-conditioned, nearly symmetric matrices."""
    import numpy as np

    g = rng.standard_normal((matrices, 3, 3))
    spin = 0.05 * rng.standard_normal((matrices, 3, 3))
    return {"a": g @ g.transpose(0, 2, 1) + 2 * np.eye(3) + spin - spin.transpose(0, 2, 1)}


def pytorch(a):
    """Call the library."""
    import torch

    return torch.linalg.inv(a)


def pytorch_cofactors(a):
    """Divide cross products of rows by the determinant."""
    import torch

    r0, r1, r2 = a.unbind(dim=1)
    cofactors = torch.stack([torch.linalg.cross(r1, r2), torch.linalg.cross(r2, r0), torch.linalg.cross(r0, r1)], dim=1)
    determinant = (r0 * cofactors[:, 0]).sum(-1)
    return cofactors / determinant[:, None, None]


def jax(a):
    """Do the same, with columns."""
    import jax.numpy as jnp

    r0, r1, r2 = a[:, 0], a[:, 1], a[:, 2]
    adjugate = jnp.stack([jnp.cross(r1, r2), jnp.cross(r2, r0), jnp.cross(r0, r1)], axis=2)
    determinant = (r0 * adjugate[:, :, 0]).sum(-1)
    return adjugate / determinant[:, None, None]
