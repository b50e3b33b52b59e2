"""Make a step of Hamiltonian Monte Carlo with many chains: leapfrog steps, and acceptance by given numbers.

JAX differentiates the potential by grad inside a fori_loop; PyTorch calls backward() at every step.
"""

STEP = 0.02


def arrays(rng, rows: int = 500, features: int = 10, leaps: int = 20):
    """Draw data, a position, a momentum, and the number that decides."""
    import numpy as np

    x = rng.standard_normal((rows, features))
    truth = rng.standard_normal(features)
    return {
        "x": x,
        "y": (rng.random(rows) < 1 / (1 + np.exp(-x @ truth))).astype(float),
        "q": 0.5 * rng.standard_normal(features),
        "p": rng.standard_normal(features),
        "u": rng.random(),
    }


def jax(x, y, q, p, u, leaps):
    """Loop in the compiler."""
    import jax
    import jax.numpy as jnp

    def potential(q):
        logits = x @ q
        log_likelihood = y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits)
        return -log_likelihood.sum() + 0.5 * (q**2).sum()

    gradient = jax.grad(potential)

    def leap(_, state):
        q, p = state
        p = p - 0.5 * STEP * gradient(q)
        q = q + STEP * p
        p = p - 0.5 * STEP * gradient(q)
        return q, p

    q_new, p_new = jax.lax.fori_loop(0, leaps, leap, (q, p))
    change = potential(q_new) + 0.5 * (p_new**2).sum() - potential(q) - 0.5 * (p**2).sum()
    accept = jnp.log(u) < -change
    return {"q": jnp.where(accept, q_new, q), "proposal": q_new, "momentum": p_new, "change": change, "accept": accept}


def pytorch(x, y, q, p, u, leaps):
    """Loop in Python."""
    import torch
    import torch.nn.functional as F

    def potential(q):
        logits = x @ q
        log_likelihood = y * F.logsigmoid(logits) + (1 - y) * F.logsigmoid(-logits)
        return -log_likelihood.sum() + 0.5 * (q**2).sum()

    def gradient(q):
        q = q.detach().requires_grad_()
        potential(q).backward()
        return q.grad

    q_new, p_new = q, p
    for _ in range(leaps):
        p_new = p_new - 0.5 * STEP * gradient(q_new)
        q_new = q_new + STEP * p_new
        p_new = p_new - 0.5 * STEP * gradient(q_new)
    change = potential(q_new) + 0.5 * (p_new**2).sum() - potential(q) - 0.5 * (p**2).sum()
    accept = torch.log(u) < -change
    return {
        "q": torch.where(accept, q_new, q),
        "proposal": q_new,
        "momentum": p_new,
        "change": change,
        "accept": accept,
    }
