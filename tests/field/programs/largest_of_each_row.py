"""Find the four largest numbers of each row, which are all apart: a call of a library, and nothing else."""


def arrays(rng, rows: int = 50, n: int = 400):
    import numpy as np

    return {"x": rng.permuted(np.tile(np.arange(n) - n / 2, (rows, 1)), axis=1) + rng.uniform(0, 0.4, (rows, n))}


def jax(x):
    from jax import lax

    return tuple(lax.approx_max_k(x, 4))


def pytorch(x):
    import torch

    return tuple(torch.topk(x, 4))
