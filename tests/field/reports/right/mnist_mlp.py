"""Make one pass of plain SGD over a few batches with a network of three layers, as in a comparison on MNIST.

JAX scans over the batches; PyTorch loops and calls backward().
"""

RATE = 0.05
measure = {"unit": "batch", "units": 8}


def arrays(rng, batch: int = 32, hidden: int = 128):
    """Draw eight batches of images in [0, 1], their digits, and weights."""
    return {
        "x": rng.random((8, batch, 784)),
        "y": rng.integers(0, 10, (8, batch)),
        "w1": rng.standard_normal((784, hidden)) * (2 / 784) ** 0.5,
        "b1": rng.standard_normal(hidden) * 0.01,
        "w2": rng.standard_normal((hidden, hidden)) * (2 / hidden) ** 0.5,
        "b2": rng.standard_normal(hidden) * 0.01,
        "w3": rng.standard_normal((hidden, 10)) * (1 / hidden) ** 0.5,
        "b3": rng.standard_normal(10) * 0.01,
    }


def jax(x, y, w1, b1, w2, b2, w3, b3):
    """Parameters are a list of pairs; the loss is written out with one-hot labels."""
    import jax

    def loss(params, x, y):
        *hidden, (w, b) = params
        for wh, bh in hidden:
            x = jax.nn.relu(x @ wh + bh)
        log_probabilities = jax.nn.log_softmax(x @ w + b)
        return -(jax.nn.one_hot(y, 10) * log_probabilities).sum(axis=1).mean()

    def step(params, batch):
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - RATE * g, params, gradients), value

    params, losses = jax.lax.scan(step, [(w1, b1), (w2, b2), (w3, b3)], (x, y))
    return {"losses": losses, "params": params}


def pytorch(x, y, w1, b1, w2, b2, w3, b3):
    """Parameters are leaves, and updated in place."""
    import torch
    import torch.nn.functional as F

    params = [p.clone().requires_grad_() for p in (w1, b1, w2, b2, w3, b3)]
    losses = []
    for xb, yb in zip(x, y):
        h = F.relu(xb @ params[0] + params[1])
        h = F.relu(h @ params[2] + params[3])
        loss = F.cross_entropy(h @ params[4] + params[5], yb)
        loss.backward()
        with torch.no_grad():
            for p in params:
                p -= RATE * p.grad
                p.grad = None
        losses.append(loss.detach())
    w1, b1, w2, b2, w3, b3 = (p.detach() for p in params)
    return {"losses": torch.stack(losses), "params": [(w1, b1), (w2, b2), (w3, b3)]}
