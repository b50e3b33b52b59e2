"""Return the matrix of a graph in a sparse format."""


def arrays(rng, n: int = 60):
    return {"x": rng.standard_normal(n)}


def jax(x):
    import jax.numpy as jnp
    from jax.experimental import sparse

    near = abs(x[:, None] - x) < 0.1
    return sparse.BCSR.fromdense(jnp.where(near, x, 0), nse=x.size**2)


def pytorch(x):
    import torch

    near = abs(x[:, None] - x) < 0.1
    return torch.where(near, x, 0).to_sparse_csr()
