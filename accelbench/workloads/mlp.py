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
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
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
        """Compare after ten steps, which move the weights by far more than rounding does."""
        return Measure(parity_units=10, differentiates=parameters.work == "train")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights (in, out) and biases (out,) of both layers, inputs (batch, in), and targets to train on."""
        widths = (parameters.inputs, parameters.hidden, parameters.outputs)
        network = {}
        for number, (fan_in, fan_out) in enumerate(pairwise(widths), start=1):
            bound = 1 / math.sqrt(fan_in)
            network[f"weights{number}"] = rng.uniform(-bound, bound, (fan_in, fan_out))
            network[f"biases{number}"] = rng.uniform(-bound, bound, fan_out)
        inputs = rng.standard_normal((parameters.batch, parameters.inputs))
        if parameters.work == "predict":
            return Arrays(state={"inputs": inputs}, batches=(network,))
        targets = rng.standard_normal((parameters.batch, parameters.outputs))
        return Arrays(state=network, batches=({"inputs": inputs, "targets": targets},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule by hand."""
        import numpy as np

        if parameters.work == "predict":
            inputs = arrays.state["inputs"]
            for _ in range(units):
                inputs = _shift_in(np.concatenate, inputs, _forward(arrays.batches[0], inputs)[1])
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
            gradients = (inputs.T @ d_hidden, d_hidden.sum(0), hidden.T @ d_outputs, d_outputs.sum(0))
            for name, gradient in zip(NAMES, gradients, strict=True):
                network[name] = network[name] - parameters.learning_rate * gradient
        return {**network, "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count 2 n m k for a product, one a number for bias, relu, loss and update; all arrays move once."""
        p = parameters
        weights = p.inputs * p.hidden + p.hidden * p.outputs
        numbers = weights + p.hidden + p.outputs
        passed_on = p.batch * (p.hidden + p.outputs)
        forward = 2.0 * p.batch * weights + passed_on + p.batch * p.hidden
        examples = p.batch * (p.inputs + p.outputs)
        if p.work == "predict":
            return Cost(flops=forward, bytes=float(numbers + examples + p.batch * p.inputs) * float_bytes)
        backward = 2.0 * p.batch * (weights + p.hidden * p.outputs) + passed_on + p.batch * p.hidden
        loss = 4.0 * p.batch * p.outputs
        return Cost(flops=forward + backward + loss + 2.0 * numbers, bytes=float(2 * numbers + examples) * float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """Count a product forward for each layer, one for its weights' gradient, and one for the hidden layer's.

        A layer's products have the same three lengths in another order; compilers turn short ones into sums.
        """
        p = parameters
        first, second = ((p.inputs, p.hidden), (p.hidden, p.outputs))
        least = [min(p.batch, *widths) >= SMALLEST_PRODUCT for widths in (first, second)]
        products = (1, 1) if p.work == "predict" else (2, 3)
        return Operations(products=sum(number for number, there in zip(products, least, strict=True) if there))

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use flax nnx and optax: the network's graph is fixed, its weights pass from step to step."""
        import jax.numpy as jnp
        import optax
        from flax import nnx

        def build() -> nnx.Sequential:
            rngs = nnx.Rngs(0)
            return nnx.Sequential(
                nnx.Linear(parameters.inputs, parameters.hidden, rngs=rngs),
                nnx.relu,
                nnx.Linear(parameters.hidden, parameters.outputs, rngs=rngs),
            )

        train = parameters.work == "train"
        graph, numbers = nnx.split(nnx.eval_shape(build))  # shapes alone, without random weights
        w1, b1, w2, b2 = tools.put(_numbers(arrays.state if train else arrays.batches[0]))
        nnx.replace_by_pure_dict(numbers, {"layers": {0: {"kernel": w1, "bias": b1}, 2: {"kernel": w2, "bias": b2}}})

        def predict(inputs: Any, numbers: Any) -> tuple[Any, None]:
            outputs = nnx.merge(graph, numbers)(inputs)
            return _shift_in(jnp.concatenate, inputs, outputs), None

        if not train:
            return _prediction_program(tools.put(arrays.state["inputs"]), predict, numbers)

        optimizer = optax.sgd(parameters.learning_rate)

        def mean_squared_error(numbers: Any, batch: Any) -> Any:
            return ((nnx.merge(graph, numbers)(batch["inputs"]) - batch["targets"]) ** 2).mean()

        def export(state: Any, loss: Any) -> dict[str, Any]:
            layers = nnx.to_pure_dict(state[0])["layers"]
            named_weights = [layers[layer][name] for layer in (0, 2) for name in ("kernel", "bias")]
            return {**dict(zip(NAMES, named_weights, strict=True)), "loss": loss}

        return Program(
            state=(numbers, optimizer.init(numbers)),
            step=training.optax_step(mean_squared_error, optimizer),
            batches=tools.put(arrays.batches),
            donate=True,
            divided=Divided(batches=("data",)),
            export=export,
        )

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn and torch.optim."""
        return _torch_program(parameters, arrays, tools)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass and loss, and so the backward pass, with torch.compile; the optimizer runs eagerly."""
        return _torch_program(parameters, arrays, tools, "loss")

    @variant("pytorch/compile-step")
    def torch_compile_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the optimizer's step as well; for prediction, the same as pytorch/compile."""
        return _torch_program(parameters, arrays, tools, "step")

    @variant("pytorch/compile-whole")
    def torch_compile_whole(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole step into one graph by torch.func; for prediction, the same as pytorch/compile."""
        return _torch_program(parameters, arrays, tools, "whole")


def _numbers(network: NamedArrays) -> list[Array]:
    return [network[name] for name in NAMES]


def _forward(network: NamedArrays, inputs: Array) -> tuple[Array, Array]:
    """Return the hidden layer's activations (batch, hidden) and the outputs (batch, outputs)."""
    hidden = (inputs @ network["weights1"] + network["biases1"]).clip(min=0)
    return hidden, hidden @ network["weights2"] + network["biases2"]


def _shift_in(concatenate: Any, inputs: Any, outputs: Any) -> Any:
    """Append outputs (batch, outputs) to inputs (batch, inputs) and drop as many of the oldest."""
    return concatenate([inputs, outputs], -1)[:, -inputs.shape[-1] :]


def _prediction_program(inputs: Any, predict: Any, network: Any, *, placed: bool = False) -> Program:
    return Program(
        state=inputs,
        step=predict,
        batches=(network,),
        placed=placed,
        divided=Divided(state=("data",)),
        export=lambda inputs, _: {"inputs": inputs},
    )


def _torch_program(
    parameters: Mlp.Parameters, arrays: Arrays, tools: Tools, compiled: training.Compiled = "nothing"
) -> Program:
    import torch

    train = parameters.work == "train"
    model = torch.nn.Sequential(
        torch.nn.Linear(parameters.inputs, parameters.hidden),
        torch.nn.ReLU(),
        torch.nn.Linear(parameters.hidden, parameters.outputs),
    )
    w1, b1, w2, b2 = tools.put(_numbers(arrays.state if train else arrays.batches[0]))
    for layer, weights, biases in ((model[0], w1, b1), (model[2], w2, b2)):
        layer.weight, layer.bias = torch.nn.Parameter(weights.T.contiguous()), torch.nn.Parameter(biases)

    def predict(inputs: Any, model: Any) -> tuple[Any, None]:
        return _shift_in(torch.cat, inputs, model(inputs)), None

    if not train:
        inputs = tools.put(arrays.state["inputs"])
        if compiled == "nothing":
            return _prediction_program(inputs, predict, model)
        return _prediction_program(inputs, torch.compile(predict), model, placed=True)

    def mean_squared_error(model: Any, batch: Any) -> Any:
        return torch.nn.functional.mse_loss(model(batch["inputs"]), batch["targets"])

    def exported(p: training.Tensors) -> dict[str, Any]:
        named_weights = (p["0.weight"].T, p["0.bias"], p["2.weight"].T, p["2.bias"])
        return dict(zip(NAMES, named_weights, strict=True))

    batches = tools.put(arrays.batches)
    return training.torch_program(model, mean_squared_error, parameters.learning_rate, batches, exported, compiled)
