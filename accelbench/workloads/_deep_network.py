"""Train a deep network of tanh layers of one width, which several workloads share."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
)
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

Layers = list[Mapping[str, Any]]
"""Layers from first to last; each has `weights` (width, width) and `biases` (width,)."""


def as_layers(state: NamedArrays) -> Layers:
    """Return the workload's state, layer by layer."""
    numbers = range(len(state) // 2)
    return [{"weights": state[f"weights{number}"], "biases": state[f"biases{number}"]} for number in numbers]


def named(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the layers as the workload's state, the inverse of `as_layers`."""
    return {f"{name}{number}": array for number, layer in enumerate(layers) for name, array in layer.items()}


class DeepNetwork(Workload):
    """Provide parameters, data, reference and cost of the network; each workload adds its programs.

    The loss is the mean squared error over all outputs; gradient descent takes the same batch in every step.
    """

    moves_once = True

    class Parameters(WorkloadParameters):
        """Describe the network and the batch."""

        layers: int = Field(default=16, ge=1, le=1000, description="Number of layers.")
        width: int = Field(default=256, ge=1, le=65_536, description="Width of every layer.")
        batch: int = Field(default=512, ge=1, le=1_048_576, description="Examples in a step.")
        learning_rate: float = Field(default=0.1, gt=0, le=10, description="Step of the gradient descent.")

    def frozen(self, parameters: Any) -> int:
        """Return how many layers, from the first, stay fixed."""
        del parameters
        return 0

    def measure(self, parameters: Any) -> Measure:
        """Compare after three steps."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """Draw weights of variance 1/width, small biases, and standard normal inputs and targets (batch, width)."""
        width = parameters.width
        state = {}
        for number in range(parameters.layers):
            state[f"weights{number}"] = rng.standard_normal((width, width)) / width**0.5
            state[f"biases{number}"] = 0.1 * rng.standard_normal(width)
        examples = {name: rng.standard_normal((parameters.batch, width)) for name in ("inputs", "targets")}
        return Arrays(state=state, batches=(examples,))

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule by hand."""
        import numpy as np

        layers = [dict(layer) for layer in as_layers(arrays.state)]
        inputs, targets = arrays.batches[0]["inputs"], arrays.batches[0]["targets"]
        rate = parameters.learning_rate
        loss = np.zeros(())
        for _ in range(units):
            activations: list[Array] = [inputs]
            for layer in layers:
                activations.append(np.tanh(activations[-1] @ layer["weights"] + layer["biases"]))
            error = activations[-1] - targets
            loss = np.mean(error**2)
            d_out = 2 * error / error.size
            for number in reversed(range(self.frozen(parameters), len(layers))):
                layer = layers[number]
                d_pre = d_out * (1 - activations[number + 1] ** 2)
                d_out = d_pre @ layer["weights"].T
                layer["weights"] = layer["weights"] - rate * activations[number].T @ d_pre
                layer["biases"] = layer["biases"] - rate * d_pre.sum(0)
        return {**named(layers), "loss": np.asarray(loss)}

    def cost(self, parameters: Any, float_bytes: int) -> Cost:
        """Count products: a layer forward 1, each trained layer's weights 1, back to all trained but the first 1.

        Add a tanh and its slope, biases with their gradients, loss and update. Weights move once, trained ones twice.
        """
        layers, width, batch = parameters.layers, parameters.width, parameters.batch
        trained = layers - self.frozen(parameters)
        products = 2.0 * batch * width**2 * (layers + 2 * trained - 1)
        activations = batch * width * (2 * layers + 4 * trained + 4)
        weights = width * (width + 1)
        moved = weights * (layers + trained) + 2 * batch * width * (1 + trained)
        return Cost(flops=products + activations + 2.0 * weights * trained, bytes=float(moved) * float_bytes)

    def operations(self, parameters: Any) -> Operations | None:
        """Count the products, unless a compiler would turn them into sums."""
        if min(parameters.batch, parameters.width) < SMALLEST_PRODUCT:
            return None
        return Operations(products=parameters.layers + 2 * (parameters.layers - self.frozen(parameters)) - 1)


def jax_loss(through: Callable[[Any, Any], Any]) -> Callable[[Layers, Any], Any]:
    """Return (layers, batch) -> mean squared error; `through` maps x and a layer to x, as `jax_layer` does."""

    def loss(layers: Layers, batch: Any) -> Any:
        x = batch["inputs"]
        for layer in layers:
            x = through(x, layer)
        return ((x - batch["targets"]) ** 2).mean()

    return loss


def jax_layer(x: Any, layer: Any) -> Any:
    """Return tanh(x W + b)."""
    import jax.numpy as jnp

    return jnp.tanh(x @ layer["weights"] + layer["biases"])


def torch_network(layers: Layers) -> Any:
    """Return the network as a torch.nn.Sequential of Linear and Tanh."""
    import torch

    parts: list[Any] = []
    for layer in layers:
        width = len(layer["biases"])
        linear = torch.nn.Linear(width, width, device="meta")  # its random weights would be overwritten
        linear.weight = torch.nn.Parameter(layer["weights"].T.contiguous())
        linear.bias = torch.nn.Parameter(layer["biases"])
        parts += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*parts)


def torch_named(network: Any) -> dict[str, Any]:
    """Return the weights (in, out) and biases of such a network, by the names of the workload's state."""
    linears = [part for part in network.modules() if hasattr(part, "weight")]
    return named([{"weights": linear.weight.detach().T, "biases": linear.bias.detach()} for linear in linears])


def torch_training(
    model: Any,
    trained: Any,
    loss_of: training.Loss,
    learning_rate: float,
    arrays: Arrays,
    tools: Tools,
    *,
    clear_all: bool = False,
) -> Program:
    """Return a step of torch.optim.SGD on the parameters `trained` of `model`; `loss_of` takes a model and a batch."""
    import torch

    return Program(
        state=(model, torch.optim.SGD(trained, lr=learning_rate)),
        step=training.torch_step(loss_of, clear_all=clear_all),
        batches=tools.put(arrays.batches),
        placed=True,
        export=lambda state, loss: {**torch_named(state[0]), "loss": loss},
    )
