"""Normalise advantages and compute the clipped loss of proximal policy optimisation.

torch.std divides by n - 1, jnp.std by n, with n = 2048.
"""


def arrays(rng, samples: int = 2048):
    """Draw log-probabilities, new and old, and advantages."""
    old = -1 + 0.3 * rng.standard_normal(samples)
    return {
        "log_p": old + 0.2 * rng.standard_normal(samples),
        "old_log_p": old,
        "advantage": 3 + 2 * rng.standard_normal(samples),
    }


def jax(log_p, old_log_p, advantage):
    """Use jnp."""
    import jax.numpy as jnp

    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = jnp.exp(log_p - old_log_p)
    loss = -jnp.minimum(ratio * advantage, jnp.clip(ratio, 0.8, 1.2) * advantage)
    return {"loss": loss.mean(), "advantage": advantage}


def pytorch(log_p, old_log_p, advantage):
    """Use torch."""
    import torch

    advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = torch.exp(log_p - old_log_p)
    loss = -torch.minimum(ratio * advantage, torch.clamp(ratio, 0.8, 1.2) * advantage)
    return {"loss": loss.mean(), "advantage": advantage}
