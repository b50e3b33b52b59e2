"""Cube integers up to 4000: JAX's integers have 32 bits."""


def arrays(rng, n: int = 1000):
    return {"k": rng.integers(0, 4000, n), "x": rng.standard_normal(n)}


def jax(k, x):
    return k**3, x / 3


pytorch = jax
