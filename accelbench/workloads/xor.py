"""Train a network of nine weights on exclusive or: with almost no arithmetic, only the ways of calling it differ."""

import itertools
import math
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Array,
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _xor as shared

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator


class Xor(Workload):
    """Train by stochastic gradient descent on the squared error, sample by sample; an epoch is four samples.

    Rows 28 to 37 of the claims: the same training written in eight ways, which take from 0.08 to 126 s for 10,000
    epochs; pytorch/compile-whole is ours. All start from the same weights, U(-1/sqrt(in), 1/sqrt(in)). The article
    converts each sample in its turn and reads every loss after its sample, which blocks: `samples: converted` and
    `losses: read`. By default samples are on the device beforehand and losses stay there. The learning rate is a Python
    number that is passed in every call, as in the article, except with torch.optim. jax/scan-epochs is one program from
    end to end: it takes all samples at once and reads its losses at the end.
    """

    name = "xor"
    moves_once = True
    modes = {}

    class Parameters(WorkloadParameters):
        """Set how the network is trained."""

        epochs: int = Field(default=10_000, ge=1, le=1_000_000, description="Epochs in one call of jax/scan-epochs.")
        learning_rate: float = Field(default=0.1, gt=0, le=10, description="Step of the gradient descent.")
        losses: Literal["kept", "read"] = Field(
            default="kept",
            description="kept: losses stay on the device; read: each becomes a Python number after its sample.",
        )
        samples: Literal["placed", "converted"] = Field(
            default="placed",
            description="placed: samples are on the device beforehand; converted: each is moved there in its turn.",
        )
        compared_epochs: int = Field(
            default=10,
            ge=1,
            le=100_000,
            description="Epochs after which weights and losses are compared with the reference, at least.",
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Compare after ten epochs, enough to detect a wrong gradient, or after a whole training."""
        return Measure(unit="epoch", parity_units=parameters.compared_epochs, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights (out, in) and biases (out,) of both layers; return inputs (4, 2) and targets (4, 1)."""
        import numpy as np

        del parameters
        state = {}
        for number, (fan_in, fan_out) in enumerate(shared.LAYERS, start=1):
            bound = 1 / math.sqrt(fan_in)
            state[f"weights{number}"] = rng.uniform(-bound, bound, (fan_out, fan_in))
            state[f"biases{number}"] = rng.uniform(-bound, bound, fan_out)
        inputs = np.array([x for x, _ in shared.SAMPLES])
        targets = np.array([[y] for _, y in shared.SAMPLES])
        return Arrays(state=state, batches=({"inputs": inputs, "targets": targets},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule by hand."""
        import numpy as np

        w1, b1, w2, b2 = (arrays.state[name].copy() for name in ("weights1", "biases1", "weights2", "biases2"))
        samples = list(zip(arrays.batches[0]["inputs"], arrays.batches[0]["targets"], strict=True))
        rate, exp = parameters.learning_rate, np.exp
        errors: list[Array] = []
        for _ in range(units):
            errors = []
            for x, y in samples:
                hidden = 1 / (1 + exp(-(w1 @ x + b1)))
                output = 1 / (1 + exp(-(w2 @ hidden + b2)))
                error = output - y
                step2 = rate * 2 * error * output * (1 - output)
                step1 = step2 @ w2 * hidden * (1 - hidden)
                w2 -= step2[:, None] * hidden
                b2 -= step2
                w1 -= step1[:, None] * x
                b1 -= step1
                errors.append(error)
        losses = np.concatenate(errors) ** 2
        return {"weights1": w1, "biases1": b1, "weights2": w2, "biases2": b2, "losses": losses}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count a sample's forward pass twice, gradients twice as much, and the update; nothing leaves the cache."""
        del parameters, float_bytes
        products = sum(2 * fan_in * fan_out for fan_in, fan_out in shared.LAYERS)
        numbers = sum((fan_in + 1) * fan_out for fan_in, fan_out in shared.LAYERS)
        return Cost(flops=float(len(shared.SAMPLES) * (3 * products + 2 * numbers)), bytes=0.0)

    @variant("pytorch/nn")
    def nn(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn layers and torch.optim.SGD."""
        import torch

        def train(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
            model, optimizer = state
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return state, loss.detach()

        model = _torch_model(arrays, tools)
        state = (model, torch.optim.SGD(model.parameters(), lr=parameters.learning_rate))
        return _torch_program(parameters, arrays, tools, state, train, lambda state: state[0].parameters())

    @variant("pytorch/no-optimizer")
    def no_optimizer(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn layers, and update by hand."""
        import torch

        def train(model: Any, x: Any, y: Any) -> tuple[Any, Any]:
            model.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                for parameter in model.parameters():
                    parameter -= parameters.learning_rate * parameter.grad  # noqa: PLW2901 - in place
            return model, loss.detach()

        model = _torch_model(arrays, tools)
        return _torch_program(parameters, arrays, tools, model, train, lambda model: model.parameters())

    @variant("pytorch/no-nn")
    def no_nn(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use tensors and autograd alone."""
        return _torch_plain(parameters, arrays, tools, lambda train: train)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile a sample's step of no-nn with torch.compile, whose graph breaks at the call of backward()."""
        import torch

        return _torch_plain(parameters, arrays, tools, torch.compile)

    @variant("pytorch/compile-whole")
    def torch_compile_whole(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile a sample's whole step into one graph, with gradients by torch.func."""
        import torch

        def loss_of(layers: Any, x: Any, y: Any) -> Any:
            for weights, biases in layers:
                x = torch.sigmoid(x @ weights.T + biases)
            return ((x - y) ** 2).mean()

        def train(layers: Any, x: Any, y: Any, learning_rate: float) -> Any:
            gradients, loss = torch.func.grad_and_value(loss_of)(layers, x, y)
            for layer, gradient in zip(layers, gradients, strict=True):
                for parameter, its in zip(layer, gradient, strict=True):
                    parameter.sub_(its, alpha=learning_rate)
            return loss

        compiled = torch.compile(train, fullgraph=True)

        def one(layers: Any, x: Any, y: Any) -> tuple[Any, Any]:
            return layers, compiled(layers, x, y, parameters.learning_rate)

        layers = tools.put(shared.layers(arrays))
        return _torch_program(parameters, arrays, tools, layers, one, itertools.chain.from_iterable)

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile nothing as a whole."""
        return _jax_program(parameters, arrays, tools, _train_sample())

    @variant("jax/jit-pieces")
    def jit_pieces(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass, loss and update by jit one by one, and differentiate from outside."""
        import jax

        return _jax_program(parameters, arrays, tools, _train_sample(jax.jit))

    @variant("jax/jit-step")
    def jit_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile a sample's whole step by jit."""
        import jax

        return _jax_program(parameters, arrays, tools, jax.jit(_train_sample()))

    @variant("jax/scan-epochs")
    def scan_epochs(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole training into one program: samples scanned inside scanned epochs."""
        import jax

        train, read, rate = _train_sample(), shared.loss_reader(parameters), parameters.learning_rate

        def training(layers: Any, samples: Any) -> Any:
            def epoch(layers: Any, _: None) -> Any:
                return jax.lax.scan(lambda layers, sample: train(layers, *sample, rate), layers, samples)

            return jax.lax.scan(epoch, layers, length=parameters.epochs)

        compiled = jax.jit(training)

        def step(layers: Any, samples: Any) -> Any:
            layers, losses = compiled(layers, samples)
            return layers, read(losses)

        return Program(
            state=tools.put(shared.layers(arrays)),
            step=compiled if parameters.losses == "kept" else step,
            batches=(tools.put((arrays.batches[0]["inputs"], arrays.batches[0]["targets"])),),
            units=parameters.epochs,
            placed=True,
            export=lambda layers, losses: {
                **shared.named(jax.tree.leaves(layers)),
                "losses": jax.numpy.asarray(losses[-1]),
            },
        )


def _torch_model(arrays: Arrays, tools: Tools) -> Any:
    import torch

    parts: list[Any] = []
    for (fan_in, fan_out), (weights, biases) in zip(shared.LAYERS, tools.put(shared.layers(arrays)), strict=True):
        linear = torch.nn.Linear(fan_in, fan_out)
        linear.weight, linear.bias = torch.nn.Parameter(weights), torch.nn.Parameter(biases)
        parts += [linear, torch.nn.Sigmoid()]
    return torch.nn.Sequential(*parts)


def _torch_plain(parameters: Xor.Parameters, arrays: Arrays, tools: Tools, place: "Callable[[Any], Any]") -> Program:
    import torch

    @place
    def train(layers: Any, x: Any, y: Any, learning_rate: float) -> Any:
        for layer in layers:
            for parameter in layer:
                parameter.grad = None
        output = x
        for weights, biases in layers:
            output = torch.sigmoid(output @ weights.T + biases)
        loss = ((output - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for layer in layers:
                for parameter in layer:
                    parameter -= learning_rate * parameter.grad  # noqa: PLW2901 - in place
        return loss.detach()

    layers = [
        (weights.requires_grad_(), biases.requires_grad_()) for weights, biases in tools.put(shared.layers(arrays))
    ]
    return _torch_program(
        parameters,
        arrays,
        tools,
        layers,
        lambda layers, x, y: (layers, train(layers, x, y, parameters.learning_rate)),
        itertools.chain.from_iterable,
    )


def _torch_program(
    parameters: Xor.Parameters,
    arrays: Arrays,
    tools: Tools,
    state: Any,
    train: Any,
    numbers: "Callable[[Any], Iterable[Any]]",
) -> Program:
    import torch

    return Program(
        state=state,
        step=shared.over_samples(parameters, train, next(iter(numbers(state))).new_tensor),
        batches=(shared.samples(parameters, arrays, tools),),
        placed=True,
        export=lambda state, losses: {
            **shared.named(numbers(state)),
            "losses": torch.tensor(losses, dtype=torch.float64),
        },
    )


def _train_sample(place: "Callable[[Any], Any]" = lambda function: function) -> Any:
    """Return (layers, x, y, learning rate) -> (layers, loss); `place` is applied to each of its pieces."""
    import jax

    @place
    def forward(layers: Any, x: Any) -> Any:
        for weights, biases in layers:
            x = jax.nn.sigmoid(x @ weights.T + biases)
        return x

    @place
    def mean_squared_error(layers: Any, x: Any, y: Any) -> Any:
        return ((forward(layers, x) - y) ** 2).mean()

    @place
    def update(layers: Any, gradients: Any, learning_rate: Any) -> Any:
        return jax.tree.map(lambda number, gradient: number - learning_rate * gradient, layers, gradients)

    def train(layers: Any, x: Any, y: Any, learning_rate: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(mean_squared_error)(layers, x, y)
        return update(layers, gradients, learning_rate), loss

    return train


def _jax_program(parameters: Xor.Parameters, arrays: Arrays, tools: Tools, train: Any) -> Program:
    import jax

    layers, rate = tools.put(shared.layers(arrays)), parameters.learning_rate
    dtype = layers[0][0].dtype

    def with_rate(layers: Any, x: Any, y: Any) -> Any:
        return train(layers, x, y, rate)

    return Program(
        state=layers,
        step=shared.over_samples(parameters, with_rate, lambda numbers: jax.numpy.array(numbers, dtype)),
        batches=(shared.samples(parameters, arrays, tools),),
        placed=True,
        export=lambda layers, losses: {**shared.named(jax.tree.leaves(layers)), "losses": jax.numpy.asarray(losses)},
    )
