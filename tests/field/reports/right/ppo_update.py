"""Make one PPO update of a small actor and critic: advantages by GAE, the clipped loss, and its gradient.

A notebook cell. JAX scans backwards for the advantages; PyTorch loops and calls backward().
"""

import jax
import jax.numpy as jnp
import numpy as np
import torch

import accelbench

GAMMA, LAMBDA, CLIP, VALUE, ENTROPY = 0.99, 0.95, 0.2, 0.5, 0.01
T, N, OBS, HIDDEN, ACTIONS = 64, 16, 8, 64, 4

rng = np.random.default_rng(1)
rollout = {
    "obs": rng.standard_normal((T, N, OBS)),
    "actions": rng.integers(0, ACTIONS, (T, N)),
    "old_log_prob": np.log(0.25) + 0.2 * rng.standard_normal((T, N)),
    "rewards": rng.standard_normal((T, N)),
    "values": rng.standard_normal((T + 1, N)),
    "dones": (rng.random((T, N)) < 0.05).astype(float),
    "w1": rng.standard_normal((OBS, HIDDEN)) / OBS**0.5,
    "b1": 0.1 * rng.standard_normal(HIDDEN),
    "wp": 0.3 * rng.standard_normal((HIDDEN, ACTIONS)) / HIDDEN**0.5,
    "wv": rng.standard_normal((HIDDEN, 1)) / HIDDEN**0.5,
}


def jax_update(obs, actions, old_log_prob, rewards, values, dones, w1, b1, wp, wv):
    def backwards(advantage, now):
        reward, value, next_value, done = now
        delta = reward + GAMMA * next_value * (1 - done) - value
        advantage = delta + GAMMA * LAMBDA * (1 - done) * advantage
        return advantage, advantage

    _, advantages = jax.lax.scan(
        backwards, jnp.zeros_like(rewards[0]), (rewards, values[:-1], values[1:], dones), reverse=True
    )
    returns = advantages + values[:-1]
    normalised = (advantages - advantages.mean()) / (advantages.std() + 1e-8)

    def loss(params):
        h = jnp.tanh(obs @ params["w1"] + params["b1"])
        log_probs = jax.nn.log_softmax(h @ params["wp"])
        value = (h @ params["wv"])[..., 0]
        log_prob = jnp.take_along_axis(log_probs, actions[..., None], axis=-1)[..., 0]
        ratio = jnp.exp(log_prob - old_log_prob)
        policy_loss = -jnp.minimum(ratio * normalised, jnp.clip(ratio, 1 - CLIP, 1 + CLIP) * normalised).mean()
        value_loss = ((value - returns) ** 2).mean()
        entropy = -(jnp.exp(log_probs) * log_probs).sum(axis=-1).mean()
        return policy_loss + VALUE * value_loss - ENTROPY * entropy

    value, gradients = jax.value_and_grad(loss)({"w1": w1, "b1": b1, "wp": wp, "wv": wv})
    return {"loss": value, "advantages": advantages, "gradients": gradients}


def torch_update(obs, actions, old_log_prob, rewards, values, dones, w1, b1, wp, wv):
    advantages = torch.zeros_like(rewards)
    last = torch.zeros_like(rewards[0])
    for t in reversed(range(rewards.shape[0])):
        delta = rewards[t] + GAMMA * values[t + 1] * (1 - dones[t]) - values[t]
        last = delta + GAMMA * LAMBDA * (1 - dones[t]) * last
        advantages[t] = last
    returns = advantages + values[:-1]
    normalised = (advantages - advantages.mean()) / (advantages.std(unbiased=False) + 1e-8)

    params = {"w1": w1, "b1": b1, "wp": wp, "wv": wv}
    params = {name: p.clone().requires_grad_() for name, p in params.items()}
    h = torch.tanh(obs @ params["w1"] + params["b1"])
    dist = torch.distributions.Categorical(logits=h @ params["wp"], validate_args=False)
    value = (h @ params["wv"]).squeeze(-1)
    ratio = torch.exp(dist.log_prob(actions) - old_log_prob)
    policy_loss = -torch.min(ratio * normalised, torch.clamp(ratio, 1 - CLIP, 1 + CLIP) * normalised).mean()
    value_loss = ((value - returns) ** 2).mean()
    loss = policy_loss + VALUE * value_loss - ENTROPY * dist.entropy().mean()
    loss.backward()
    return {"loss": loss.detach(), "advantages": advantages, "gradients": {k: p.grad for k, p in params.items()}}


if __name__ == "__main__":
    found = accelbench.compare(pytorch=torch_update, jax=jax_update, arrays=rollout)
    print(found)
