"""Share parts of xor's variants: the samples, the loop over them, the reading of losses, and JAX's step."""

import itertools
from collections.abc import Callable
from typing import Any

from accelbench.workload import Arrays, Tools

SAMPLES = [([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0)]
"""Inputs and target of each sample."""
LAYERS = [(2, 2), (2, 1)]
"""(in, out) of each layer; each layer is a sigmoid of an affine map."""


def loss_reader(parameters: Any) -> Callable[[Any], Any]:
    """Return a function that converts losses to Python numbers for `losses: read`, or else returns them unchanged.

    Converting waits until the device has computed the losses.
    """
    if parameters.losses == "read":
        return lambda losses: losses.tolist()
    return lambda losses: losses


def step_over_samples(parameters: Any, train: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a step (state, samples) -> (state, losses) that trains sample by sample.

    `train` maps (state, x, y) to (state, loss). `convert` moves numbers to the device for `samples: converted`.
    """
    read_loss = loss_reader(parameters)

    def step(state: Any, samples: Any) -> tuple[Any, Any]:
        """Train on all samples; return the last state and all losses."""
        losses = []
        for x, y in samples:
            state, loss = train(state, x, y)
            losses.append(read_loss(loss))
        return state, losses

    if parameters.samples == "placed":
        return step

    def convert_and_step(state: Any, samples: Any) -> tuple[Any, Any]:
        """Convert each sample right before the training on it; return the last state and all losses."""
        # A generator, so that each sample is converted right before the training on it.
        return step(state, ((convert(x), convert(y)) for x, y in samples))

    return convert_and_step


def samples(parameters: Any, arrays: Arrays, tools: Tools) -> Any:
    """Return pairs of a sample's inputs (2,) and target (1,): for `samples: placed` on the device, else as lists."""
    pairs = list(zip(arrays.batches[0]["inputs"], arrays.batches[0]["targets"], strict=True))
    if parameters.samples == "placed":
        return tools.put(pairs)
    return [(x.tolist(), y.tolist()) for x, y in pairs]


def layers(arrays: Arrays) -> list[tuple[Any, Any]]:
    """Return weights (out, in) and biases (out,) of each layer."""
    return [(arrays.state[f"weights{layer}"], arrays.state[f"biases{layer}"]) for layer in (1, 2)]


def flatten(layers: Any) -> Any:
    """Yield the weights and the biases of each layer in turn."""
    return itertools.chain.from_iterable(layers)


def arrays_by_name(weights_and_biases: Any) -> dict[str, Any]:
    """Return the weights and biases of both layers by the names that `reference` uses."""
    return dict(zip(("weights1", "biases1", "weights2", "biases2"), weights_and_biases, strict=True))


def jax_train_sample(compiler: Callable[[Any], Any]) -> Any:
    """Return a training step for one sample: (layers, x, y, learning rate) -> (new layers, loss).

    `layers` has the weights and biases of each layer. `compiler` compiles forward pass, loss and update separately.
    """
    import jax

    @compiler
    def forward(layers: Any, x: Any) -> Any:
        """Return the outputs of the last layer."""
        for weights, biases in layers:
            x = jax.nn.sigmoid(x @ weights.T + biases)
        return x

    @compiler
    def mean_squared_error(layers: Any, x: Any, y: Any) -> Any:
        return ((forward(layers, x) - y) ** 2).mean()

    @compiler
    def update(layers: Any, gradients: Any, learning_rate: Any) -> Any:
        """Return the layers after a step of gradient descent."""
        return jax.tree.map(lambda parameter, gradient: parameter - learning_rate * gradient, layers, gradients)

    def train(layers: Any, x: Any, y: Any, learning_rate: Any) -> tuple[Any, Any]:
        """Train on one sample; return the new layers and the loss."""
        loss, gradients = jax.value_and_grad(mean_squared_error)(layers, x, y)
        return update(layers, gradients, learning_rate), loss

    return train
