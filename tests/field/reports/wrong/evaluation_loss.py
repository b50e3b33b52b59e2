"""Evaluate a linear classifier over a data set, in batches of 64: the mean loss and the accuracy.

JAX wants batches of one shape and leaves out the last 40 of 1000 examples.
"""

BATCH = 64


def arrays(rng, examples: int = 1000, features: int = 64, classes: int = 10):
    """Draw examples, labels and weights."""
    return {
        "x": rng.standard_normal((examples, features)),
        "label": rng.integers(0, classes, examples),
        "w": rng.standard_normal((features, classes)) / features**0.5,
    }


def jax(x, label, w):
    """Map over whole batches."""
    import jax
    import optax

    whole = x.shape[0] // BATCH
    x = x[: whole * BATCH].reshape(whole, BATCH, -1)
    label = label[: whole * BATCH].reshape(whole, BATCH)

    def evaluate(batch):
        x, label = batch
        logits = x @ w
        loss = optax.softmax_cross_entropy_with_integer_labels(logits, label).mean()
        return loss, (logits.argmax(-1) == label).mean()

    losses, accuracies = jax.lax.map(evaluate, (x, label))
    return {"loss": losses.mean(), "accuracy": accuracies.mean()}


def pytorch(x, label, w):
    """Loop over all batches."""
    import torch.nn.functional as F

    loss, right = 0, 0
    for part, expected in zip(x.split(BATCH), label.split(BATCH)):
        logits = part @ w
        loss = loss + F.cross_entropy(logits, expected, reduction="sum")
        right = right + (logits.argmax(-1) == expected).to(x.dtype).sum()
    return {"loss": loss / len(x), "accuracy": right / len(x)}
