"""Make one step of gradient descent, and return what a training loop keeps."""

from dataclasses import dataclass
from typing import Any


@dataclass
class Trained:
    """Hold the loss and the new weights; the outputs are `loss`, `weights.w` and `weights.b`."""

    loss: Any
    weights: dict[str, Any]


def arrays(rng, rows: int = 256, features: int = 64):
    """Draw data and weights."""
    return {
        "x": rng.standard_normal((rows, features)),
        "y": rng.standard_normal(rows),
        "w": rng.standard_normal(features) / features,
        "b": 0.1,
    }


def jax(x, y, w, b):
    """Differentiate a function of the weights."""
    import jax

    def loss(weights):
        return ((x @ weights["w"] + weights["b"] - y) ** 2).mean()

    weights = {"w": w, "b": b}
    value, gradients = jax.value_and_grad(loss)(weights)
    return Trained(value, {name: weights[name] - 0.1 * gradients[name] for name in weights})


def pytorch(x, y, w, b):
    """Call backward(); a dictionary has the same paths as the dataclass."""
    w, b = w.clone().requires_grad_(), b.clone().requires_grad_()
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    return {"loss": loss, "weights": {"w": w - 0.1 * w.grad, "b": b - 0.1 * b.grad}}
