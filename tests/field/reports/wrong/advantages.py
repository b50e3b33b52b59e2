"""Compute generalised advantages backwards in time, for many environments.

`dones[t]` says that the episode ended with step t. PyTorch takes it as if it said that step t begins a new episode, and
so looks one step ahead.
"""

GAMMA, LAMBDA = 0.99, 0.95


def arrays(rng, steps: int = 128, environments: int = 16):
    """Draw rewards, values (one more than steps) and ends of episodes, one of fifty steps."""
    return {
        "rewards": rng.standard_normal((steps, environments)),
        "values": rng.standard_normal((steps + 1, environments)),
        "dones": (rng.random((steps, environments)) < 0.02) * 1.0,
    }


def jax(rewards, values, dones):
    """Scan backwards."""
    import jax
    import jax.numpy as jnp

    def step(advantage, now):
        reward, value, following, done = now
        delta = reward + GAMMA * following * (1 - done) - value
        advantage = delta + GAMMA * LAMBDA * (1 - done) * advantage
        return advantage, advantage

    start = jnp.zeros_like(rewards[0])
    return jax.lax.scan(step, start, (rewards, values[:-1], values[1:], dones), reverse=True)[1]


def pytorch(rewards, values, dones):
    """Loop backwards."""
    import torch

    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    steps = rewards.shape[0]
    for t in reversed(range(steps)):
        going_on = 1 - dones[min(t + 1, steps - 1)]
        delta = rewards[t] + GAMMA * values[t + 1] * going_on - values[t]
        last = delta + GAMMA * LAMBDA * going_on * last
        advantages[t] = last
    return advantages
