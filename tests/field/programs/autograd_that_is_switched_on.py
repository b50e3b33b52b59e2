"""Differentiate Rosenbrock's function, with autograd on for that alone."""


def arrays(rng, n: int = 1000):
    return {"x": rng.standard_normal(n)}


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def jax(x):
    import jax

    return jax.grad(rosenbrock)(x)


def pytorch(x):
    import torch

    with torch.enable_grad():
        x = x.clone().requires_grad_()
        return torch.autograd.grad(rosenbrock(x), x)[0]
