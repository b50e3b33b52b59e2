"""Multiply a sparse matrix by a vector; the matrix is made once and not timed."""


def arrays(rng, size: int = 2000, each: int = 8):
    """Draw `each` numbers of every row, at random columns."""
    import numpy as np

    return {
        "rows": np.repeat(np.arange(size), each),
        "columns": rng.integers(0, size, size * each),
        "values": rng.standard_normal(size * each),
        "x": rng.standard_normal(size),
    }


def setup_jax(rows, columns, values, size):
    """Make the matrix from the first three arrays."""
    import jax.numpy as jnp
    from jax.experimental import sparse

    return {"matrix": sparse.BCOO((values, jnp.stack([rows, columns], axis=1)), shape=(size, size))}


def jax(matrix, x):
    """Take the matrix and the fourth array."""
    return matrix @ x


def setup_pytorch(rows, columns, values, size):
    """Make the same matrix, by rows."""
    import torch

    return {"matrix": torch.sparse_coo_tensor(torch.stack([rows, columns]), values, (size, size)).to_sparse_csr()}


def pytorch(matrix, x):
    """Do the same as JAX."""
    return matrix @ x
