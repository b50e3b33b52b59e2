"""A step of training, as it is written everywhere: with optax, and with torch.optim."""

from collections.abc import Callable
from typing import Any

from accelbench.workload import Array

Loss = Callable[[Any, Any], Any]
"""(weights or model, batch) -> the loss, a scalar."""


def optax_step(loss_of: Loss, optimizer: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A step whose state is (weights, the optimiser's state)."""
    import jax
    import optax

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        weights, optimizer_state = state
        loss, gradients = jax.value_and_grad(loss_of)(weights, batch)
        updates, optimizer_state = optimizer.update(gradients, optimizer_state, weights)
        return (optax.apply_updates(weights, updates), optimizer_state), loss

    return step


def torch_step(loss_of: Loss, *, clear_all: bool = False) -> Callable[[Any, Any], tuple[Any, Any]]:
    """A step whose state is (model, optimiser); both change in place.

    `clear_all`: gradients of the whole model are cleared, and not only of what the optimiser trains.
    """

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer = state
        (model if clear_all else optimizer).zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    return step


def cross_entropy_and_gradient(logits: Array, labels: Array) -> tuple[Array, Array]:
    """In NumPy, of logits (batch, classes) and labels (batch,): the mean loss, and its gradient by the logits."""
    import numpy as np

    shares = np.exp(logits - logits.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    right = np.arange(len(labels)), labels
    loss = -np.log(shares[right]).mean()
    shares[right] -= 1
    return np.asarray(loss), shares / len(labels)
