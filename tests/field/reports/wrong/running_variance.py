"""Normalise a batch of images in training, and update the running mean and variance.

PyTorch updates the running variance with the unbiased estimate, the other side with the biased one.
"""

EPSILON, MOMENTUM = 1e-5, 0.1


def arrays(rng, batch: int = 16, channels: int = 32, size: int = 8):
    """Draw images and what the layer remembers."""
    return {
        "x": 1 + 2 * rng.standard_normal((batch, channels, size, size)),
        "weight": 1 + 0.1 * rng.standard_normal(channels),
        "bias": 0.1 * rng.standard_normal(channels),
        "mean": 0.1 * rng.standard_normal(channels),
        "var": 0.5 + rng.random(channels),
    }


def jax(x, weight, bias, mean, var):
    """Write the layer out."""
    import jax

    now_mean, now_var = x.mean((0, 2, 3)), x.var((0, 2, 3))
    scale = weight * jax.lax.rsqrt(now_var + EPSILON)
    y = (x - now_mean[:, None, None]) * scale[:, None, None] + bias[:, None, None]
    mean = (1 - MOMENTUM) * mean + MOMENTUM * now_mean
    var = (1 - MOMENTUM) * var + MOMENTUM * now_var
    return {"y": y, "mean": mean, "var": var}


def pytorch(x, weight, bias, mean, var):
    """Use F.batch_norm, which changes the running numbers in place."""
    import torch.nn.functional as F

    mean, var = mean.clone(), var.clone()
    y = F.batch_norm(x, mean, var, weight, bias, training=True, momentum=MOMENTUM, eps=EPSILON)
    return {"y": y, "mean": mean, "var": var}
