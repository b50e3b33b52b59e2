"""Train a network of nine weights on exclusive or, in ways that differ in the overhead of their calls."""

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
    epochs; pytorch/compile-whole is not from the article. All start from the same weights, U(-1/sqrt(in), 1/sqrt(in)).
    The article converts each sample in its turn and reads every loss after its sample, which waits for the device:
    `samples: converted` and `losses: read`. By default samples are on the device beforehand and losses stay there. The
    learning rate is a Python number that is passed in every call, as in the article, except with torch.optim.
    jax/scan-epochs is one program from end to end: it takes all samples at once and reads its losses at the end.
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
        """Request a comparison with the reference after `compared_epochs`; ten epochs reveal a wrong gradient."""
        return Measure(unit="epoch", parity_units=parameters.compared_epochs, differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return random weights (out, in) and biases, and inputs (4, 2) and targets (4, 1)."""
        import numpy as np

        del parameters
        state = {}
        for layer, (fan_in, fan_out) in enumerate(shared.LAYERS, start=1):
            bound = 1 / math.sqrt(fan_in)
            state[f"weights{layer}"] = rng.uniform(-bound, bound, (fan_out, fan_in))
            state[f"biases{layer}"] = rng.uniform(-bound, bound, fan_out)
        inputs = np.array([x for x, _ in shared.SAMPLES])
        targets = np.array([[y] for _, y in shared.SAMPLES])
        return Arrays(state=state, batches=({"inputs": inputs, "targets": targets},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` epochs; return the weights, the biases and the losses of the last epoch."""
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
                # Each update is the rate times the gradient of a layer's biases.
                update2 = rate * 2 * error * output * (1 - output)
                update1 = update2 @ w2 * hidden * (1 - hidden)
                w2 -= update2[:, None] * hidden
                b2 -= update2
                w1 -= update1[:, None] * x
                b1 -= update1
                errors.append(error)
        losses = np.concatenate(errors) ** 2
        return {"weights1": w1, "biases1": b1, "weights2": w2, "biases2": b2, "losses": losses}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the matrix products and updates of an epoch, and no bytes, because all data stays in caches."""
        del parameters, float_bytes
        forward = sum(2 * fan_in * fan_out for fan_in, fan_out in shared.LAYERS)
        backward = 2 * forward
        weights_and_biases = sum((fan_in + 1) * fan_out for fan_in, fan_out in shared.LAYERS)
        update = 2 * weights_and_biases
        return Cost(flops=float(len(shared.SAMPLES) * (forward + backward + update)), bytes=0.0)

    @variant("pytorch/nn")
    def nn(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn layers and torch.optim.SGD."""
        import torch

        def train(state: Any, x: Any, y: Any) -> tuple[Any, Any]:
            """Train on one sample; return the state, changed in place, and the loss."""
            model, optimizer = state
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            return state, loss.detach()

        def weights_and_biases(state: Any) -> Any:
            model, _optimizer = state
            return model.parameters()

        model = _torch_model(arrays, tools)
        state = (model, torch.optim.SGD(model.parameters(), lr=parameters.learning_rate))
        return _torch_program(parameters, arrays, tools, state, train, weights_and_biases)

    @variant("pytorch/no-optimizer")
    def no_optimizer(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.nn layers, and update the weights by hand, without torch.optim."""
        import torch

        def train(model: Any, x: Any, y: Any) -> tuple[Any, Any]:
            """Train on one sample; return the model, changed in place, and the loss."""
            model.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                for tensor in model.parameters():
                    tensor -= parameters.learning_rate * tensor.grad  # noqa: PLW2901 - in place
            return model, loss.detach()

        model = _torch_model(arrays, tools)
        return _torch_program(parameters, arrays, tools, model, train, lambda model: model.parameters())

    @variant("pytorch/no-nn")
    def no_nn(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use tensors and autograd, without torch.nn and torch.optim."""
        return _torch_tensors_program(parameters, arrays, tools, _without_compiler)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply torch.compile to the step of pytorch/no-nn for one sample; the graph breaks at backward()."""
        import torch

        return _torch_tensors_program(parameters, arrays, tools, torch.compile)

    @variant("pytorch/compile-whole")
    def torch_compile_whole(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole step for one sample into one graph, with gradients by torch.func."""
        import torch

        def loss_of(layers: Any, x: Any, y: Any) -> Any:
            for weights, biases in layers:
                x = torch.sigmoid(x @ weights.T + biases)
            return ((x - y) ** 2).mean()

        def train(layers: Any, x: Any, y: Any, learning_rate: float) -> Any:
            """Train on one sample: change the layers in place and return the loss."""
            gradients, loss = torch.func.grad_and_value(loss_of)(layers, x, y)
            for layer, layer_gradients in zip(layers, gradients, strict=True):
                for tensor, gradient in zip(layer, layer_gradients, strict=True):
                    tensor.sub_(gradient, alpha=learning_rate)
            return loss

        compiled = torch.compile(train, fullgraph=True)

        def train_sample(layers: Any, x: Any, y: Any) -> tuple[Any, Any]:
            loss = compiled(layers, x, y, parameters.learning_rate)  # changes the layers in place
            return layers, loss

        initial_layers = tools.put(shared.layers(arrays))
        return _torch_program(parameters, arrays, tools, initial_layers, train_sample, shared.flatten)

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run without jit, one operation at a time."""
        return _jax_program(parameters, arrays, tools, shared.jax_train_sample(_without_compiler))

    @variant("jax/jit-pieces")
    def jit_pieces(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply jit to forward pass, loss and update separately; jax.value_and_grad runs outside jit."""
        import jax

        return _jax_program(parameters, arrays, tools, shared.jax_train_sample(jax.jit))

    @variant("jax/jit-step")
    def jit_step(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply jit to the whole step for one sample."""
        import jax

        return _jax_program(parameters, arrays, tools, jax.jit(shared.jax_train_sample(_without_compiler)))

    @variant("jax/scan-epochs")
    def scan_epochs(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile the whole training into one program: a scan over epochs, each a scan over the samples."""
        import jax

        train = shared.jax_train_sample(_without_compiler)
        read_losses, rate = shared.loss_reader(parameters), parameters.learning_rate

        def train_epochs(layers: Any, samples: Any) -> Any:
            """Train for all epochs; return the layers and the losses (epochs, samples)."""

            def train_epoch(layers: Any, _: None) -> Any:
                return jax.lax.scan(lambda layers, sample: train(layers, *sample, rate), layers, samples)

            return jax.lax.scan(train_epoch, layers, length=parameters.epochs)

        compiled = jax.jit(train_epochs)

        def train_and_read(layers: Any, samples: Any) -> Any:
            """Train for all epochs; return the layers, and the losses as Python numbers."""
            layers, losses = compiled(layers, samples)
            return layers, read_losses(losses)

        def export(layers: Any, losses: Any) -> dict[str, Any]:
            last_epoch = losses[-1]
            return {**shared.arrays_by_name(jax.tree.leaves(layers)), "losses": jax.numpy.asarray(last_epoch)}

        return Program(
            state=tools.put(shared.layers(arrays)),
            step=compiled if parameters.losses == "kept" else train_and_read,
            batches=(tools.put((arrays.batches[0]["inputs"], arrays.batches[0]["targets"])),),
            units=parameters.epochs,
            placed=True,
            export=export,
        )


def _without_compiler(function: "Callable[..., Any]") -> "Callable[..., Any]":
    """Return the function unchanged; this takes the place of jax.jit or torch.compile."""
    return function


def _torch_model(arrays: Arrays, tools: Tools) -> Any:
    """Return a torch.nn.Sequential of Linear and Sigmoid modules with the workload's weights."""
    import torch

    modules: list[Any] = []
    for (fan_in, fan_out), (weights, biases) in zip(shared.LAYERS, tools.put(shared.layers(arrays)), strict=True):
        linear = torch.nn.Linear(fan_in, fan_out)
        linear.weight, linear.bias = torch.nn.Parameter(weights), torch.nn.Parameter(biases)
        modules += [linear, torch.nn.Sigmoid()]
    return torch.nn.Sequential(*modules)


def _torch_tensors_program(
    parameters: Xor.Parameters, arrays: Arrays, tools: Tools, compiler: "Callable[[Any], Any]"
) -> Program:
    """Return a program that trains without torch.nn; `compiler` compiles the step for one sample."""
    import torch

    @compiler
    def train(layers: Any, x: Any, y: Any, learning_rate: float) -> Any:
        """Train on one sample: change the layers in place and return the loss."""
        for layer in layers:
            for tensor in layer:
                tensor.grad = None
        output = x
        for weights, biases in layers:
            output = torch.sigmoid(output @ weights.T + biases)
        loss = ((output - y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            for layer in layers:
                for tensor in layer:
                    tensor -= learning_rate * tensor.grad  # noqa: PLW2901 - in place
        return loss.detach()

    def train_sample(layers: Any, x: Any, y: Any) -> tuple[Any, Any]:
        loss = train(layers, x, y, parameters.learning_rate)  # changes the layers in place
        return layers, loss

    initial_layers = tools.put(shared.layers(arrays))
    for tensor in shared.flatten(initial_layers):
        tensor.requires_grad_()
    return _torch_program(parameters, arrays, tools, initial_layers, train_sample, shared.flatten)


def _torch_program(
    parameters: Xor.Parameters,
    arrays: Arrays,
    tools: Tools,
    state: Any,
    train: Any,
    weights_and_biases: "Callable[[Any], Iterable[Any]]",
) -> Program:
    """Return a program of `train` (state, x, y) -> (state, loss); `weights_and_biases` returns a state's tensors."""
    import torch

    def export(state: Any, losses: Any) -> dict[str, Any]:
        tensors = shared.arrays_by_name(weights_and_biases(state))
        return {**tensors, "losses": torch.tensor(losses, dtype=torch.float64)}

    first_tensor = next(iter(weights_and_biases(state)))
    return Program(
        state=state,
        # `new_tensor` converts a list of numbers to a tensor of the same type and device.
        step=shared.step_over_samples(parameters, train, first_tensor.new_tensor),
        batches=(shared.samples(parameters, arrays, tools),),
        placed=True,  # `train` is compiled as far as its variant says, so no mode is applied to the step
        export=export,
    )


def _jax_program(parameters: Xor.Parameters, arrays: Arrays, tools: Tools, train: Any) -> Program:
    """Return a program that calls `train` (layers, x, y, learning rate) -> (layers, loss) for each sample."""
    import jax

    initial_layers = tools.put(shared.layers(arrays))
    first_weights, _biases = initial_layers[0]

    def train_sample(layers: Any, x: Any, y: Any) -> Any:
        return train(layers, x, y, parameters.learning_rate)

    def sample_to_array(numbers: list[float]) -> Any:
        return jax.numpy.array(numbers, first_weights.dtype)

    def export(layers: Any, losses: Any) -> dict[str, Any]:
        return {**shared.arrays_by_name(jax.tree.leaves(layers)), "losses": jax.numpy.asarray(losses)}

    return Program(
        state=initial_layers,
        step=shared.step_over_samples(parameters, train_sample, sample_to_array),
        batches=(shared.samples(parameters, arrays, tools),),
        placed=True,  # `train` is compiled as far as its variant says, so no mode is applied to the step
        export=export,
    )
