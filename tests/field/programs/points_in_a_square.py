"""Say which points lie in a square: a truth for each."""


def arrays(rng, n: int = 1000):
    return {"x": rng.standard_normal(n), "y": rng.standard_normal(n)}


def jax(x, y):
    return (abs(x) < 1) & (abs(y) < 1)


pytorch = jax
