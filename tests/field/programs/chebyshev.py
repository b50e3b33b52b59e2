"""Evaluate a Chebyshev polynomial by its recurrence; its degree is a parameter, and the number of steps."""


def arrays(rng, n: int = 1000, degree: int = 6):
    return {"x": rng.uniform(-1, 1, n)}


def jax(x, degree):
    before, now = x**0, x
    for _ in range(degree - 1):
        before, now = now, 2 * x * now - before
    return now


pytorch = jax
