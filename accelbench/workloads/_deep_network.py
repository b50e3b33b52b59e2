"""A deep network of tanh layers, all of one width, and its training: what several workloads train in their own ways."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from accelbench.workload import SMALLEST_PRODUCT, Array, Arrays, Cost, NamedArrays, Operations

if TYPE_CHECKING:
    from numpy.random import Generator

Layers = list[Mapping[str, Any]]
"""From the first to the last; each has `weights` (width, width) and `biases` (width,)."""


def draw(layers: int, width: int, batch: int, rng: "Generator") -> Arrays:
    """Weights of variance 1/width and small biases as state; standard normal inputs and targets (batch, width)."""
    state = {}
    for number in range(layers):
        state[f"weights{number}"] = rng.standard_normal((width, width)) / width**0.5
        state[f"biases{number}"] = 0.1 * rng.standard_normal(width)
    examples = {name: rng.standard_normal((batch, width)) for name in ("inputs", "targets")}
    return Arrays(state=state, batches=(examples,))


def as_layers(state: NamedArrays) -> Layers:
    """The state of `draw`, layer by layer."""
    numbers = range(len(state) // 2)
    return [{"weights": state[f"weights{number}"], "biases": state[f"biases{number}"]} for number in numbers]


def named(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The opposite."""
    return {f"{name}{number}": array for number, layer in enumerate(layers) for name, array in layer.items()}


def trained(arrays: Arrays, learning_rate: float, units: int, frozen: int = 0) -> NamedArrays:
    """Weights, biases and the last loss after `units` steps of gradient descent; the first `frozen` layers stay.

    The chain rule by hand, in NumPy; the loss is the mean squared error over all numbers.
    """
    import numpy as np

    layers = [dict(layer) for layer in as_layers(arrays.state)]
    inputs, targets = arrays.batches[0]["inputs"], arrays.batches[0]["targets"]
    loss = np.zeros(())
    for _ in range(units):
        passed: list[Array] = [inputs]
        for layer in layers:
            passed.append(np.tanh(passed[-1] @ layer["weights"] + layer["biases"]))
        error = passed[-1] - targets
        loss = np.mean(error**2)
        at = 2 * error / error.size
        for number in reversed(range(frozen, len(layers))):
            layer = layers[number]
            before = at * (1 - passed[number + 1] ** 2)
            at = before @ layer["weights"].T
            layer["weights"] = layer["weights"] - learning_rate * passed[number].T @ before
            layer["biases"] = layer["biases"] - learning_rate * before.sum(0)
    return {**named(layers), "loss": np.asarray(loss)}


def cost(layers: int, frozen: int, width: int, batch: int, float_bytes: int) -> Cost:
    """Of a step of training in which the first `frozen` layers stay.

    Products: one a layer forward, one for each trained layer's weights, one back to all trained but the first. A tanh
    and its slope, biases and their gradients, loss and update beside them; weights once, trained ones twice.
    """
    trained = layers - frozen
    products = 2.0 * batch * width**2 * (layers + 2 * trained - 1)
    activations = batch * width * (2 * layers + 4 * trained + 4)
    weights = width * (width + 1)
    moved = weights * (layers + trained) + 2 * batch * width * (1 + trained)
    return Cost(flops=products + activations + 2.0 * weights * trained, bytes=float(moved) * float_bytes)


def operations(layers: int, frozen: int, width: int, batch: int) -> Operations | None:
    """The products of such a step; None where a compiler would turn them into sums."""
    if min(batch, width) < SMALLEST_PRODUCT:
        return None
    return Operations(products=layers + 2 * (layers - frozen) - 1)


def jax_loss(through: Callable[[Any, Any], Any]) -> Callable[[Layers, Any], Any]:
    """(layers, batch) -> mean squared error; `through` takes x and a layer, as `jax_layer` does."""

    def loss(layers: Layers, batch: Any) -> Any:
        x = batch["inputs"]
        for layer in layers:
            x = through(x, layer)
        return ((x - batch["targets"]) ** 2).mean()

    return loss


def jax_layer(x: Any, layer: Any) -> Any:
    """tanh(x W + b)."""
    import jax.numpy as jnp

    return jnp.tanh(x @ layer["weights"] + layer["biases"])


def torch_network(layers: Layers) -> Any:
    """The same as a torch.nn.Sequential, Linear and Tanh by turns."""
    import torch

    parts: list[Any] = []
    for layer in layers:
        width = len(layer["biases"])
        linear = torch.nn.Linear(width, width, device="meta")  # what it would draw is overwritten
        linear.weight = torch.nn.Parameter(layer["weights"].T.contiguous())
        linear.bias = torch.nn.Parameter(layer["biases"])
        parts += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*parts)


def torch_named(network: Any) -> dict[str, Any]:
    """Weights (in, out) and biases of such a network, by the names of `draw`."""
    linears = list(network)[::2]
    return named([{"weights": each.weight.detach().T, "biases": each.bias.detach()} for each in linears])
