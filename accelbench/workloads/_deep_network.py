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
    """Return the workload's state as a list of layers."""
    indices = range(len(state) // 2)  # each layer has weights and biases
    return [{"weights": state[f"weights{index}"], "biases": state[f"biases{index}"]} for index in indices]


def as_state(layers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a list of layers as the workload's state: the inverse of `as_layers`."""
    state = {}
    for index, layer in enumerate(layers):
        state[f"weights{index}"] = layer["weights"]
        state[f"biases{index}"] = layer["biases"]
    return state


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

    def frozen_layers(self, parameters: Any) -> int:
        """Return how many of the first layers are not trained: none, unless a subclass freezes some."""
        del parameters
        return 0

    def measure(self, parameters: Any) -> Measure:
        """Request a comparison with the reference after three steps."""
        del parameters
        return Measure(parity_units=3, differentiates=True)

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """Draw the weights and biases of each layer, and standard normal inputs and targets (batch, width)."""
        width = parameters.width
        state = {}
        for index in range(parameters.layers):
            state[f"weights{index}"] = rng.standard_normal((width, width)) / width**0.5
            state[f"biases{index}"] = 0.1 * rng.standard_normal(width)
        examples = {name: rng.standard_normal((parameters.batch, width)) for name in ("inputs", "targets")}
        return Arrays(state=state, batches=(examples,))

    def reference(self, parameters: Any, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps; return weights, biases and the last loss."""
        import numpy as np

        layers, frozen = as_layers(arrays.state), self.frozen_layers(parameters)
        loss = np.zeros(())
        for _ in range(units):
            loss, gradients = loss_and_gradients(layers, arrays.batches[0], frozen)
            for index, gradient in enumerate(gradients, start=frozen):
                layer = layers[index]
                layers[index] = {name: layer[name] - parameters.learning_rate * gradient[name] for name in layer}
        return {**as_state(layers), "loss": loss}

    def cost(self, parameters: Any, float_bytes: int) -> Cost:
        """Count the operations of a training step, and the bytes that it moves.

        Operations: products, biases and tanh with their gradients, loss and update. Bytes: all weights are read, and
        trained weights are also written; activations of trained layers are written and read.
        """
        layers, width, batch = parameters.layers, parameters.width, parameters.batch
        trained_layers = layers - self.frozen_layers(parameters)
        flops_of_product = 2.0 * batch * width**2
        products = flops_of_product * count_products(layers, trained_layers)
        # Each activation: bias and tanh forward (2); backward, if trained, times 1 - tanh^2, and the bias gradient (4).
        # Each output: the loss (4).
        elementwise = batch * width * (2 * layers + 4 * trained_layers + 4)
        weights_of_layer = width * (width + 1)
        update = 2.0 * weights_of_layer * trained_layers
        moved_weights = weights_of_layer * (layers + trained_layers)
        inputs_and_targets = 2 * batch * width
        moved_activations = 2 * batch * width * trained_layers
        moved = moved_weights + inputs_and_targets + moved_activations
        return Cost(flops=products + elementwise + update, bytes=float(moved) * float_bytes)

    def operations(self, parameters: Any) -> Operations | None:
        """Count the matrix products of a step; None if they are so small that compilers may turn them into sums."""
        if min(parameters.batch, parameters.width) < SMALLEST_PRODUCT:
            return None
        trained_layers = parameters.layers - self.frozen_layers(parameters)
        return Operations(products=count_products(parameters.layers, trained_layers))


def count_products(layers: int, trained_layers: int) -> int:
    """Count the matrix products of a training step, forward and backward."""
    forward = layers
    weight_gradients = trained_layers
    input_gradients = trained_layers - 1  # nothing below the first trained layer needs a gradient
    return forward + weight_gradients + input_gradients


def loss_and_gradients(layers: Layers, batch: NamedArrays, frozen: int = 0) -> tuple[Array, Layers]:
    """Return the mean squared error and, for all layers but the first `frozen`, its gradients, in NumPy by hand."""
    import numpy as np

    activations: list[Array] = [batch["inputs"]]  # layer i maps activations[i] to activations[i + 1]
    for layer in layers:
        activations.append(np.tanh(activations[-1] @ layer["weights"] + layer["biases"]))
    error = activations[-1] - batch["targets"]
    d_outputs = 2 * error / error.size
    gradients: Layers = []
    for index in reversed(range(frozen, len(layers))):
        d_before_tanh = d_outputs * (1 - activations[index + 1] ** 2)
        gradients.insert(0, {"weights": activations[index].T @ d_before_tanh, "biases": d_before_tanh.sum(0)})
        d_outputs = d_before_tanh @ layers[index]["weights"].T  # gradient of the outputs of the layer below
    return np.asarray(np.mean(error**2)), gradients


def jax_loss(apply_layer: Callable[[Any, Any], Any]) -> Callable[[Layers, Any], Any]:
    """Return a function (layers, batch) -> mean squared error. `apply_layer` maps (x, layer) to the next x."""

    def mean_squared_error(layers: Layers, batch: Any) -> Any:
        """Return the mean squared error of the last layer's outputs."""
        x = batch["inputs"]
        for layer in layers:
            x = apply_layer(x, layer)
        return ((x - batch["targets"]) ** 2).mean()

    return mean_squared_error


def jax_layer(x: Any, layer: Any) -> Any:
    """Apply one layer in JAX: return tanh(x @ weights + biases)."""
    import jax.numpy as jnp

    return jnp.tanh(x @ layer["weights"] + layer["biases"])


def torch_network(layers: Layers) -> Any:
    """Return the network as a torch.nn.Sequential of Linear and Tanh modules."""
    import torch

    modules: list[Any] = []
    for layer in layers:
        width = len(layer["biases"])
        linear = torch.nn.Linear(width, width, device="meta")  # its random weights would be overwritten
        linear.weight = torch.nn.Parameter(layer["weights"].T.contiguous())
        linear.bias = torch.nn.Parameter(layer["biases"])
        modules += [linear, torch.nn.Tanh()]
    return torch.nn.Sequential(*modules)


def torch_as_state(network: Any) -> dict[str, Any]:
    """Return the weights and biases of a `torch_network` as the workload's state."""
    linears = [module for module in network.modules() if hasattr(module, "weight")]  # Tanh has no weights
    return as_state([{"weights": linear.weight.detach().T, "biases": linear.bias.detach()} for linear in linears])


def torch_training(
    model: Any,
    trained_parameters: Any,
    loss_of: training.Loss,
    learning_rate: float,
    arrays: Arrays,
    tools: Tools,
    *,
    clear_all: bool = False,
) -> Program:
    """Return a program that trains `trained_parameters`, all or some of the model's, by torch.optim.SGD.

    If `clear_all`, each step clears the gradients of the whole model, not only the trained ones.
    """
    import torch

    def export(state: Any, loss: Any) -> dict[str, Any]:
        """Return the weights, biases and loss by the names that `reference` uses."""
        trained_model, _optimizer = state
        return {**torch_as_state(trained_model), "loss": loss}

    return Program(
        state=(model, torch.optim.SGD(trained_parameters, lr=learning_rate)),
        step=training.torch_step(loss_of, clear_all=clear_all),
        batches=tools.put(arrays.batches),
        placed=True,
        export=export,
    )
