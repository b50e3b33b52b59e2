"""Compute log |det| of a network's orbitals and its Hessian with respect to the positions, for a batch of walkers.

Each of four particles has a position on a line; the network maps it to four orbitals. Both outputs are ill-conditioned
where particles are close to each other.
"""


def arrays(rng, walkers: int = 32, width: int = 32):
    """Draw positions and weights."""
    return {
        "x": rng.standard_normal((walkers, 4)),
        "w1": rng.standard_normal(width),
        "b1": rng.standard_normal(width),
        "w2": rng.standard_normal((width, width)) / width**0.5,
        "w3": rng.standard_normal((width, 4)) / width**0.5,
    }


def jax(x, w1, b1, w2, w3):
    """Use jax.hessian under vmap."""
    import jax
    import jax.numpy as jnp

    def log_psi(positions):
        hidden = jnp.tanh(positions[:, None] * w1 + b1)
        hidden = jnp.tanh(hidden @ w2)
        _, logdet = jnp.linalg.slogdet(hidden @ w3)
        return logdet

    return {"log_psi": jax.vmap(log_psi)(x), "hessian": jax.vmap(jax.hessian(log_psi))(x)}


def pytorch(x, w1, b1, w2, w3):
    """Use torch.func.hessian under vmap."""
    import torch

    def log_psi(positions):
        hidden = torch.tanh(positions[:, None] * w1 + b1)
        hidden = torch.tanh(hidden @ w2)
        return torch.linalg.slogdet(hidden @ w3).logabsdet

    return {"log_psi": torch.vmap(log_psi)(x), "hessian": torch.vmap(torch.func.hessian(log_psi))(x)}
