"""Add noise that each framework draws by its own generator; the seed is for JAX alone."""


def arrays(rng, n: int = 128):
    return {"x": rng.standard_normal((n, n)), "seed": 5}


def jax(x, seed):
    import jax

    return x + 0.1 * jax.random.normal(jax.random.key(seed), x.shape, x.dtype)


def pytorch(x, seed):
    import torch

    return x + 0.1 * torch.randn_like(x)
