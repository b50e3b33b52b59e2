"""Evaluate a small classifier over a data set in batches: mean loss and number of right answers.

Wrong on JAX's side: 1000 rows are cut into whole batches of 128, so that scan can take them; the last 104 rows are
dropped, and the mean is over the rest.
"""

BATCH = 128


def arrays(rng, rows: int = 1000, features: int = 64, hidden: int = 64):
    """Draw data and weights."""
    return {
        "x": rng.standard_normal((rows, features)),
        "y": rng.integers(0, 10, rows),
        "w1": rng.standard_normal((features, hidden)) / features**0.5,
        "w2": rng.standard_normal((hidden, 10)) / hidden**0.5,
    }


def jax(x, y, w1, w2):
    """Scan over batches of one shape."""
    import jax
    import jax.numpy as jnp

    n = len(x) // BATCH * BATCH
    batches = x[:n].reshape(-1, BATCH, x.shape[1]), y[:n].reshape(-1, BATCH)

    def evaluate(totals, batch):
        x, y = batch
        log_probabilities = jax.nn.log_softmax(jnp.tanh(x @ w1) @ w2)
        loss = -jnp.take_along_axis(log_probabilities, y[:, None], axis=1).sum()
        right = (log_probabilities.argmax(axis=1) == y).sum()
        return (totals[0] + loss, totals[1] + right), None

    (loss, right), _ = jax.lax.scan(evaluate, (jnp.zeros((), x.dtype), jnp.zeros((), int)), batches)
    return {"loss": loss / n, "right": right}


def pytorch(x, y, w1, w2):
    """Split, with a smaller last batch."""
    import torch
    import torch.nn.functional as F

    loss, right = 0.0, 0
    for xb, yb in zip(x.split(BATCH), y.split(BATCH)):
        logits = torch.tanh(xb @ w1) @ w2
        loss = loss + F.cross_entropy(logits, yb, reduction="sum")
        right = right + (logits.argmax(dim=1) == yb).sum()
    return {"loss": loss / len(x), "right": right}
