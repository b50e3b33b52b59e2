"""Train a small multilayer perceptron with the usual libraries: flax nnx and optax, torch.nn and torch.optim."""

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    SMALLEST_PRODUCT,
    Array,
    Arrays,
    Cost,
    Divided,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _training as training

if TYPE_CHECKING:
    from numpy.random import Generator

NAMES = ("weights1", "biases1", "weights2", "biases2")


class Mlp(Workload):
    """Train linear, relu, linear by gradient descent on the mean squared error, or predict with it.

    Rows 19, 21 and 53 of the claims: "for a small MLP, this takes ~0.5 seconds", and "subsequent calls are instant";
    widths, batch and learning rate are those of article A3. Training takes the same batch in every step. Prediction
    runs as a forecast does: predictions replace the oldest inputs, and the next step predicts from that. Both
    frameworks start from the same weights, U(-1/sqrt(in), 1/sqrt(in)) as torch.nn.Linear does.
    """

    name = "mlp"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    libraries = {"jax": ("flax.nnx", "optax")}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch, and choose training or prediction."""

        inputs: int = Field(default=10, ge=1, le=65_536, description="Features of an example.")
        hidden: int = Field(default=64, ge=1, le=65_536, description="Width of the hidden layer.")
        outputs: int = Field(default=1, ge=1, le=65_536, description="Predicted numbers of an example.")
        batch: int = Field(default=32, ge=1, le=1_048_576, description="Examples in a step.")
        learning_rate: float = Field(default=0.001, gt=0, le=10, description="Step of the gradient descent.")
        work: Literal["train", "predict"] = Field(
            default="train", description="train: loss, gradients and update; predict: the forward pass alone."
        )

        @model_validator(mode="after")
        def _predictions_fit_among_the_inputs(self) -> Self:
            if self.work == "predict" and self.outputs > self.inputs:
                raise ValueError(
                    "what is predicted becomes the next inputs, so there can be no more outputs than inputs"
                )
            return self

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after ten steps, when training has clearly changed the weights."""
        return Measure(parity_units=10, differentiates=parameters.work == "train")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights (in, out), biases (out,), inputs (batch, in) and, for training, targets.

        The state is what a step changes: the network in training, the inputs in prediction.
        """
        widths = (parameters.inputs, parameters.hidden, parameters.outputs)
        network = {}
        for layer, (fan_in, fan_out) in enumerate(pairwise(widths), start=1):
            bound = 1 / math.sqrt(fan_in)
            network[f"weights{layer}"] = rng.uniform(-bound, bound, (fan_in, fan_out))
            network[f"biases{layer}"] = rng.uniform(-bound, bound, fan_out)
        inputs = rng.standard_normal((parameters.batch, parameters.inputs))
        if parameters.work == "predict":
            return Arrays(state={"inputs": inputs}, batches=(network,))
        targets = rng.standard_normal((parameters.batch, parameters.outputs))
        return Arrays(state=network, batches=({"inputs": inputs, "targets": targets},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train or predict in NumPy for `units` steps; return what the programs export."""
        import numpy as np

        if parameters.work == "predict":
            inputs = arrays.state["inputs"]
            for _ in range(units):
                _hidden, outputs = _forward(arrays.batches[0], inputs)
                inputs = _append_outputs(np.concatenate, inputs, outputs)
            return {"inputs": inputs}
        network = dict(arrays.state)
        inputs, targets = arrays.batches[0]["inputs"], arrays.batches[0]["targets"]
        loss = np.zeros(())
        for _ in range(units):
            hidden, outputs = _forward(network, inputs)
            error = outputs - targets
            loss = np.mean(error**2)
            d_outputs = 2 * error / error.size
            d_hidden = d_outputs @ network["weights2"].T * (hidden > 0)
            # In the order of NAMES.
            gradients = (inputs.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_outputs, d_outputs.sum(0))
            for name, gradient in zip(NAMES, gradients, strict=True):
                network[name] = network[name] - parameters.learning_rate * gradient
        return {**network, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of a step, and the bytes that it moves.

        Operations: products, biases and relu; for training also their gradients, the loss and the update. Bytes: a
        prediction reads weights and inputs, and writes outputs and the next inputs. Training reads inputs and targets,
        and reads and writes weights.
        """
        p = parameters
        weights = p.inputs * p.hidden + p.hidden * p.outputs
        weights_and_biases = weights + p.hidden + p.outputs
        add_biases = p.batch * (p.hidden + p.outputs)
        relu = p.batch * p.hidden
        forward = 2.0 * p.batch * weights + add_biases + relu
        examples = p.batch * (p.inputs + p.outputs)
        if p.work == "predict":
            next_inputs = p.batch * p.inputs
            return Cost(flops=forward, bytes=float(weights_and_biases + examples + next_inputs) * float_bytes)
        # Gradients of all weights and of the hidden layer; nothing needs the gradient of the inputs.
        backward = 2.0 * p.batch * (weights + p.hidden * p.outputs) + add_biases + relu
        loss = 4.0 * p.batch * p.outputs  # subtract, square, add, and the gradient
        update = 2.0 * weights_and_biases
        moved = 2 * weights_and_biases + examples
        return Cost(flops=forward + backward + loss + update, bytes=float(moved) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count the matrix products of a step, without small ones, which compilers turn into sums."""
        p = parameters
        train = p.work == "train"
        products = 0
        if min(p.batch, p.inputs, p.hidden) >= SMALLEST_PRODUCT:
            products += 2 if train else 1  # forward, gradient of the weights
        if min(p.batch, p.hidden, p.outputs) >= SMALLEST_PRODUCT:
            products += 3 if train else 1  # forward, gradient of the weights, gradient of the hidden layer
        return Operations(products=products)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train or predict with flax nnx and optax."""
        if parameters.work == "train":
            return _jax_training_program(parameters, arrays, tools)
        return _jax_prediction_program(parameters, arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train or predict with torch.nn and torch.optim; torch.compile compiles all but the optimizer."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile-step", in_mode="compile")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step too, unlike pytorch/compile; a prediction is the same in both."""
        return _torch_program(parameters, arrays, tools, "step")

    @variant("pytorch/compile-whole", in_mode="compile")
    def torch_compile_whole(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole training step into one graph, by torch.func; predict as pytorch/compile does."""
        return _torch_program(parameters, arrays, tools, "whole")


def _weights_and_biases(network: NamedArrays) -> list[Array]:
    """Return the network's arrays in the order of `NAMES`."""
    return [network[name] for name in NAMES]


def _forward(network: NamedArrays, inputs: Array) -> tuple[Array, Array]:
    """Return the hidden layer's activations (batch, hidden) and the outputs (batch, outputs)."""
    hidden = (inputs @ network["weights1"] + network["biases1"]).clip(min=0)  # relu
    return hidden, hidden @ network["weights2"] + network["biases2"]


def _append_outputs(concatenate: Any, inputs: Any, outputs: Any) -> Any:
    """Append outputs to inputs by the framework's `concatenate`, and drop the first inputs to keep the width."""
    return concatenate([inputs, outputs], -1)[:, -inputs.shape[-1] :]


def _prediction_program(inputs: Any, predict: Any, network: Any, *, placed: bool = False) -> Program:
    """Return a program whose step is `predict`, (inputs, network) -> (next inputs, None).

    Set `placed` if `predict` already has the variant's mode, so that the adapter calls it unchanged.
    If there are several devices, each computes some of the examples.
    """
    return Program(
        state=inputs,
        step=predict,
        batches=(network,),
        placed=placed,
        divided=Divided(state=("data",)),
        export=lambda inputs, _: {"inputs": inputs},
    )


def _jax_network(parameters: Mlp.Parameters, network: NamedArrays, tools: Tools) -> tuple[Any, Any]:
    """Return a flax network with the weights of `network`, split into (graph, weights), which nnx.merge joins."""
    from flax import nnx

    def build() -> nnx.Sequential:
        """Create the network; the seed does not matter, because `build` is called for shapes only."""
        rngs = nnx.Rngs(0)
        return nnx.Sequential(
            nnx.Linear(parameters.inputs, parameters.hidden, rngs=rngs),
            nnx.relu,
            nnx.Linear(parameters.hidden, parameters.outputs, rngs=rngs),
        )

    graph, weights = nnx.split(nnx.eval_shape(build))  # eval_shape computes only shapes, no random weights
    w1, b1, w2, b2 = tools.put(_weights_and_biases(network))
    nnx.replace_by_pure_dict(weights, {"layers": {0: {"kernel": w1, "bias": b1}, 2: {"kernel": w2, "bias": b2}}})
    return graph, weights


def _jax_prediction_program(parameters: Mlp.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step predicts with flax nnx."""
    import jax.numpy as jnp
    from flax import nnx

    graph, weights = _jax_network(parameters, arrays.batches[0], tools)

    def predict(inputs: Any, weights: Any) -> tuple[Any, None]:
        """Return the next inputs, which end with the predicted outputs, so that each step needs the previous one."""
        outputs = nnx.merge(graph, weights)(inputs)
        return _append_outputs(jnp.concatenate, inputs, outputs), None

    return _prediction_program(tools.put(arrays.state["inputs"]), predict, weights)


def _jax_training_program(parameters: Mlp.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose state is (weights, optimizer state); several devices share each batch."""
    import optax
    from flax import nnx

    graph, weights = _jax_network(parameters, arrays.state, tools)
    optimizer = optax.sgd(parameters.learning_rate)

    def mean_squared_error(weights: Any, batch: Any) -> Any:
        return ((nnx.merge(graph, weights)(batch["inputs"]) - batch["targets"]) ** 2).mean()

    def export(state: Any, loss: Any) -> dict[str, Any]:
        """Return the weights by the names that `reference` uses, and the loss."""
        weights, _optimizer_state = state
        layers = nnx.to_pure_dict(weights)["layers"]
        first, second = layers[0], layers[2]  # 1 is the relu
        values = (first["kernel"], first["bias"], second["kernel"], second["bias"])
        return {**dict(zip(NAMES, values, strict=True)), "loss": loss}

    return Program(
        state=(weights, optimizer.init(weights)),
        step=training.optax_step(mean_squared_error, optimizer),
        batches=tools.put(arrays.batches),
        donate=True,
        divided=Divided(batches=("data",)),
        export=export,
    )


def _torch_program(parameters: Mlp.Parameters, arrays: Arrays, tools: Tools, part: training.Part = "loss") -> Program:
    """Return a program with torch.nn that trains or, for `work: predict`, predicts.

    `part` is what runs in the variant's mode in a training, as in `torch_program`; in a prediction, the whole step.
    """
    import torch

    train = parameters.work == "train"
    model = torch.nn.Sequential(
        torch.nn.Linear(parameters.inputs, parameters.hidden),
        torch.nn.ReLU(),
        torch.nn.Linear(parameters.hidden, parameters.outputs),
    )
    w1, b1, w2, b2 = tools.put(_weights_and_biases(arrays.state if train else arrays.batches[0]))
    for layer, weights, biases in ((model[0], w1, b1), (model[2], w2, b2)):
        layer.weight, layer.bias = torch.nn.Parameter(weights.T.contiguous()), torch.nn.Parameter(biases)

    def predict(inputs: Any, model: Any) -> tuple[Any, None]:
        """Return the next inputs, which end with the predicted outputs, so that each step needs the previous one."""
        return _append_outputs(torch.cat, inputs, model(inputs)), None

    if not train:
        return _prediction_program(tools.put(arrays.state["inputs"]), tools.in_mode(predict), model, placed=True)

    def mean_squared_error(model: Any, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(model(batch["inputs"]), batch["targets"])

    def export_weights(tensors: training.Tensors) -> dict[str, Any]:
        """Return the tensors with the names and layouts that `reference` uses."""
        # 0 and 2 are the linear layers.
        values = (tensors["0.weight"].T, tensors["0.bias"], tensors["2.weight"].T, tensors["2.bias"])
        return dict(zip(NAMES, values, strict=True))

    rate, batches = parameters.learning_rate, tools.put(arrays.batches)
    return training.torch_program(model, mean_squared_error, rate, batches, export_weights, tools, part)
