"""Make the first step of RMSProp with each library's optimiser, with the same settings.

optax adds epsilon inside the square root by default, torch.optim outside.
"""


def arrays(rng, rows: int = 256, features: int = 64):
    """Draw data and weights."""
    return {
        "x": rng.standard_normal((rows, features)),
        "y": rng.standard_normal(rows),
        "w": rng.standard_normal(features) / features**0.5,
    }


def jax(x, y, w):
    """Use optax.rmsprop."""
    import jax
    import optax

    optimizer = optax.rmsprop(1e-3, decay=0.99, eps=0.01)
    gradient = jax.grad(lambda w: ((x @ w - y) ** 2).mean())(w)
    updates, _ = optimizer.update(gradient, optimizer.init(w))
    return optax.apply_updates(w, updates)


def pytorch(x, y, w):
    """Use torch.optim.RMSprop."""
    import torch

    w = w.clone().requires_grad_()
    optimizer = torch.optim.RMSprop([w], lr=1e-3, alpha=0.99, eps=0.01)
    ((x @ w - y) ** 2).mean().backward()
    optimizer.step()
    return w.detach()
