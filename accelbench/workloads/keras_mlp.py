"""Measure the overhead of Keras 3: one model on JAX and on PyTorch, compared with the framework's own training loop."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import (
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
from accelbench.workloads import _training as training
from accelbench.workloads.mlp import NAMES, Mlp

if TYPE_CHECKING:
    from numpy.random import Generator


class KerasMlp(Workload):
    """Train linear, relu, linear by gradient descent on the mean squared error; a call takes `steps` mini-batches.

    Row 82 of the claims: Keras 3 runs on either framework. The same Keras model is trained by `fit`, and in a loop of
    the framework: by stateless calls under jax.jit, and as a torch.nn.Module. They are compared with the programs of
    the workload mlp, without Keras. By default Keras compiles with XLA on JAX, and runs eagerly on PyTorch. `fit` gets
    the weights and returns them in every call, which takes little time compared with its `steps` steps.
    """

    name = "keras-mlp"
    modes = {}
    libraries = {
        "jax": ("flax.nnx", "optax"),
        "keras_stateless": ("keras",),
        "keras_fit_on_jax": ("keras",),
        "keras_module": ("keras",),
        "keras_fit_on_torch": ("keras",),
    }
    extra = "keras"

    class Parameters(WorkloadParameters):
        """Describe the network and the mini-batches."""

        inputs: int = Field(default=64, ge=1, le=65_536, description="Features of an example.")
        hidden: int = Field(default=64, ge=1, le=65_536, description="Width of the hidden layer.")
        outputs: int = Field(default=1, ge=1, le=65_536, description="Predicted numbers of an example.")
        batch: int = Field(default=32, ge=1, le=65_536, description="Examples in a step.")
        steps: int = Field(default=256, ge=1, le=10_000, description="Mini-batches, each a step; a call takes all.")
        learning_rate: float = Field(default=0.01, gt=0, le=10, description="Step of the gradient descent.")

    def measure(self, parameters: Parameters) -> Measure:
        """Declare that steps compute gradients."""
        del parameters
        return Measure(differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights and biases as in mlp, and mini-batches of inputs (batch, in) and targets (batch, out)."""
        p = parameters
        drawn = Mlp().arrays(_of_mlp(p), rng)
        batches = [
            {"inputs": rng.standard_normal((p.batch, p.inputs)), "targets": rng.standard_normal((p.batch, p.outputs))}
            for _ in range(p.steps)
        ]
        return Arrays(state=drawn.state, batches=batches)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Train in NumPy for `units` steps, each on the next mini-batch; return weights and biases."""
        network = arrays.state
        for unit in range(units):
            batch = arrays.batches[unit % parameters.steps]
            trained = Mlp().reference(_of_mlp(parameters), Arrays(state=network, batches=(batch,)), 1)
            network = {name: trained[name] for name in NAMES}
        return network

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count a step of mlp: products, biases and relu, their gradients, the loss and the update."""
        return Mlp().cost(_of_mlp(parameters), float_bytes)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train with flax and optax, without Keras: one compiled step, called in a Python loop."""
        program = training.jit_donating(Mlp().jax(_of_mlp(parameters), arrays, tools))
        return _without_loss(parameters, program)

    @variant("jax/keras-stateless")
    def keras_stateless(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the model's and the optimizer's stateless methods in a step under jax.jit."""
        import jax

        model = _model(parameters, tools.put(arrays.state))

        def loss(weights: Any, batch: Any) -> Any:
            """Return the mean squared error of the model with these weights."""
            # The second argument has the variables that are not trained, of which this model has none.
            outputs, _ = model.stateless_call(weights, [], batch["inputs"])
            return model.loss(batch["targets"], outputs)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            """Train on one mini-batch; return the next state and the loss."""
            weights, optimizer = state  # `optimizer`: the values of the optimizer's variables
            value, gradients = jax.value_and_grad(loss)(weights, batch)
            # `stateless_apply` returns the new weights and the new values of the optimizer's variables.
            return model.optimizer.stateless_apply(optimizer, gradients, weights), value

        program = Program(
            state=([v.value for v in model.trainable_variables], [v.value for v in model.optimizer.variables]),
            step=step,
            batches=tools.put(arrays.batches),
            inner=parameters.steps,
            export=lambda state, _: dict(zip(NAMES, state[0], strict=True)),
        )
        return training.jit_donating(program)

    @variant("jax/keras-fit")
    def keras_fit_on_jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the model's fit, on JAX."""
        return _fit(parameters, arrays, tools)

    @variant("pytorch/eager")
    def eager(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Train with torch.nn and torch.optim, without Keras."""
        return _without_loss(parameters, replace(Mlp().pytorch(_of_mlp(parameters), arrays, tools), placed=True))

    @variant("pytorch/keras-module")
    def keras_module(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use the model as a torch.nn.Module, with torch.optim."""
        import torch

        model = _model(parameters, tools.put(arrays.state))
        optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)

        def train(data: Any) -> None:
            """Train on each mini-batch."""
            for batch in data:
                optimizer.zero_grad()
                torch.nn.functional.mse_loss(model(batch["inputs"]), batch["targets"]).backward()
                optimizer.step()

        return _stateful(parameters, arrays, tools, model, train, tools.put(arrays.batches))

    @variant("pytorch/keras-fit")
    def keras_fit_on_torch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the model's fit, on PyTorch."""
        return _fit(parameters, arrays, tools)


def _of_mlp(parameters: KerasMlp.Parameters) -> Mlp.Parameters:
    """Return the parameters of the workload mlp with the same network, batch and learning rate."""
    return Mlp.Parameters(**parameters.model_dump(exclude={"steps"}))


def _without_loss(parameters: KerasMlp.Parameters, program: Program) -> Program:
    """Return the program of mlp with all mini-batches in a call, and without the loss, which `fit` averages."""

    def export(state: Any, loss: Any) -> dict[str, Any]:
        """Return weights and biases without the loss."""
        exported = program.export(state, loss)
        return {name: exported[name] for name in NAMES}

    return replace(program, inner=parameters.steps, export=export)


def _model(parameters: KerasMlp.Parameters, network: Any) -> Any:
    """Return a compiled Keras model with the weights of `network`, which are the framework's arrays."""
    import keras

    dtype = str(network["weights1"].dtype).removeprefix("torch.")
    keras.config.set_floatx(dtype)  # the type that Keras gives the loss and the learning rate
    layers = [
        keras.layers.Input((parameters.inputs,), dtype=dtype),
        keras.layers.Dense(parameters.hidden, "relu", dtype=dtype),
        keras.layers.Dense(parameters.outputs, dtype=dtype),
    ]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.SGD(parameters.learning_rate), keras.losses.MeanSquaredError())
    # Keras builds the optimizer in its first step, but a stateless step needs its variables before that.
    model.optimizer.build(model.trainable_variables)
    _load(model, [network[name] for name in NAMES])
    return model


def _load(model: Any, weights: Any) -> None:
    """Set the model's weights and biases to `weights`, which are in the order of `NAMES`."""
    for variable, value in zip(model.trainable_variables, weights, strict=True):
        variable.assign(value)


def _fit(parameters: KerasMlp.Parameters, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose call is an epoch of the model's fit, in the order of the mini-batches."""
    import numpy as np

    model = _model(parameters, tools.put(arrays.state))
    names = ("inputs", "targets")
    data = tools.put({name: np.concatenate([batch[name] for batch in arrays.batches]) for name in names})

    def train(data: Any) -> None:
        """Train on all mini-batches, without shuffling."""
        model.fit(data["inputs"], data["targets"], batch_size=parameters.batch, shuffle=False, verbose=0)

    return _stateful(parameters, arrays, tools, model, train, data)


def _stateful(
    parameters: KerasMlp.Parameters, arrays: Arrays, tools: Tools, model: Any, train: Any, data: Any
) -> Program:
    """Return a program whose call loads weights into the model, calls `train` with `data`, and returns new weights."""
    import keras

    def step(weights: Any, data: Any) -> tuple[Any, None]:
        """Train the model, starting from `weights`; return the trained weights."""
        _load(model, weights)
        train(data)
        return [keras.ops.copy(variable.value) for variable in model.trainable_variables], None

    return Program(
        state=tools.put([arrays.state[name] for name in NAMES]),
        step=step,
        batches=(data,),
        units=parameters.steps,
        placed=True,
        donate=True,  # on JAX, fit reuses the memory of the weights that it gets
        export=lambda weights, _: dict(zip(NAMES, weights, strict=True)),
    )
