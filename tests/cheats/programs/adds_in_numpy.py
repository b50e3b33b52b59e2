"""A function of two arrays."""


def arrays(rng):
    return {"x": rng.standard_normal((64, 64)), "w": rng.standard_normal((64, 64))}


def numpy(x, w):
    return x @ w + 1.0


def jax(x, w):
    return x @ w + 1.0
