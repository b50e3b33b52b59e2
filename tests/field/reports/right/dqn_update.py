"""Make one update of a deep Q-network: the target from a second network, the Huber loss, a gradient step.

Outputs: the loss and the new weights.
"""

GAMMA = 0.98
RATE = 0.01


def arrays(rng, batch: int = 128, width: int = 128):
    """Draw transitions, and the weights of the network and of its target."""
    data = {
        "s": rng.standard_normal((batch, 4)),
        "a": rng.integers(0, 2, batch),
        "r": rng.random(batch),
        "s_prime": rng.standard_normal((batch, 4)),
        "not_done": (rng.random(batch) < 0.95) * 1.0,
    }
    for name in ("", "target_"):
        data[name + "w1"] = rng.standard_normal((4, width)) / 2
        data[name + "b1"] = rng.standard_normal(width) / 10
        data[name + "w2"] = rng.standard_normal((width, 2)) / width**0.5
        data[name + "b2"] = rng.standard_normal(2) / 10
    return data


def jax(s, a, r, s_prime, not_done, w1, b1, w2, b2, target_w1, target_b1, target_w2, target_b2):
    """Differentiate a function of the weights; optax has the Huber loss."""
    import jax
    import jax.numpy as jnp
    import optax

    def q_values(p, x):
        w1, b1, w2, b2 = p
        return jax.nn.relu(x @ w1 + b1) @ w2 + b2

    best = q_values((target_w1, target_b1, target_w2, target_b2), s_prime).max(axis=1)
    target = r + GAMMA * best * not_done

    def loss(p):
        chosen = jnp.take_along_axis(q_values(p, s), a[:, None], axis=1)[:, 0]
        return optax.huber_loss(chosen, target, delta=1.0).mean()

    weights = (w1, b1, w2, b2)
    value, gradients = jax.value_and_grad(loss)(weights)
    return {"loss": value, "weights": [w - RATE * g for w, g in zip(weights, gradients)]}


def pytorch(s, a, r, s_prime, not_done, w1, b1, w2, b2, target_w1, target_b1, target_w2, target_b2):
    """Call backward()."""
    import torch
    import torch.nn.functional as F

    weights = [w.clone().requires_grad_() for w in (w1, b1, w2, b2)]
    q = F.relu(s @ weights[0] + weights[1]) @ weights[2] + weights[3]
    chosen = q.gather(1, a.long()[:, None])[:, 0]
    with torch.no_grad():
        best = (F.relu(s_prime @ target_w1 + target_b1) @ target_w2 + target_b2).max(1).values
        target = r + GAMMA * best * not_done
    loss = F.smooth_l1_loss(chosen, target)
    loss.backward()
    with torch.no_grad():
        return {"loss": loss, "weights": [w - RATE * w.grad for w in weights]}
