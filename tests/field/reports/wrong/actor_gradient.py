"""Compute the loss of a soft actor and its gradients, with reparametrised actions and given noise.

PyTorch detaches the sample before its log-probability is taken, as for a score-function estimate: the loss is the same,
the gradients are not.
"""

ALPHA = 0.2


def arrays(rng, batch: int = 128, observation: int = 16, action: int = 4):
    """Draw observations, noise, the actor's weights and a critic's."""
    scale = observation**-0.5
    return {
        "s": rng.standard_normal((batch, observation)),
        "noise": rng.standard_normal((batch, action)),
        "w_mean": scale * rng.standard_normal((observation, action)),
        "w_log_std": 0.5 * scale * rng.standard_normal((observation, action)),
        "critic": scale * rng.standard_normal((observation + action, 1)),
    }


def jax(s, noise, w_mean, w_log_std, critic):
    """Differentiate through the sample."""
    import math

    import jax
    import jax.numpy as jnp

    def loss(weights):
        w_mean, w_log_std = weights
        mean, log_std = s @ w_mean, s @ w_log_std
        u = mean + jnp.exp(log_std) * noise
        action = jnp.tanh(u)
        log_p = -0.5 * ((u - mean) / jnp.exp(log_std)) ** 2 - log_std - 0.5 * math.log(2 * math.pi)
        log_p = (log_p - jnp.log(1 - action**2 + 1e-6)).sum(-1)
        q = jnp.tanh(jnp.concatenate([s, action], axis=-1) @ critic)[:, 0]
        return (ALPHA * log_p - q).mean()

    value, (g_mean, g_log_std) = jax.value_and_grad(loss)((w_mean, w_log_std))
    return {"loss": value, "mean": g_mean, "log_std": g_log_std}


def pytorch(s, noise, w_mean, w_log_std, critic):
    """Use torch.distributions and backward()."""
    import torch
    from torch.distributions import Normal

    w_mean, w_log_std = w_mean.clone().requires_grad_(), w_log_std.clone().requires_grad_()
    mean, std = s @ w_mean, torch.exp(s @ w_log_std)
    u = mean + std * noise
    action = torch.tanh(u)
    log_p = Normal(mean, std).log_prob(u.detach())
    log_p = (log_p - torch.log(1 - action**2 + 1e-6)).sum(-1)
    q = torch.tanh(torch.cat([s, action], dim=-1) @ critic)[:, 0]
    loss = (ALPHA * log_p - q).mean()
    loss.backward()
    return {"loss": loss, "mean": w_mean.grad, "log_std": w_log_std.grad}
