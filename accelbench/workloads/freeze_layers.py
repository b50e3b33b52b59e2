"""Training with the first layers frozen: whether what is frozen is also not computed."""

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from accelbench.workload import (
    Arrays,
    Cost,
    Measure,
    NamedArrays,
    Operations,
    Program,
    Tools,
    Workload,
    WorkloadParameters,
    variant,
)
from accelbench.workloads import _deep_network as network

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.random import Generator


class FreezeLayers(Workload):
    """A step of gradient descent on a network of tanh layers (width x width), whose first `frozen` layers stay.

    Row 57 of the claims: freezing is `requires_grad = False` in PyTorch, while in JAX "you'd filter the pytree
    manually". Frozen layers need no gradient, and nothing before the first that is trained needs a way back. In
    JAX that is done by optax's masking (gradients of everything are written down, and a compiler may drop them), or by
    differentiating by the trained layers alone; in PyTorch by `requires_grad`, or by an optimiser that is not given
    the frozen layers.
    """

    name = "freeze-layers"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    libraries = {"jax": ("optax",)}

    class Parameters(WorkloadParameters):
        """The network, the batch, and how much is frozen."""

        layers: int = Field(default=20, ge=1, le=1000, description="Layers in all.")
        frozen: int = Field(default=10, ge=0, le=1000, description="Layers that stay as they are, from the first on.")
        width: int = Field(default=256, ge=1, le=65_536, description="Of every layer.")
        batch: int = Field(default=256, ge=1, le=1_048_576, description="Examples in a step.")
        learning_rate: float = Field(default=0.1, gt=0, le=10, description="Step of the gradient descent.")

        @model_validator(mode="after")
        def _something_is_trained(self) -> Self:
            if self.frozen >= self.layers:
                raise ValueError("at least one layer has to be trained: frozen must be below layers")
            return self

    def measure(self, parameters: Parameters) -> Measure:
        """Three steps."""
        del parameters
        return Measure(parity_units=3)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """See `_deep_network.draw`."""
        return network.draw(parameters.layers, parameters.width, parameters.batch, rng)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """See `_deep_network.trained`."""
        return network.trained(arrays, parameters.learning_rate, units, parameters.frozen)

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """See `_deep_network.cost`."""
        p = parameters
        return network.cost(p.layers, p.frozen, p.width, p.batch, float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """See `_deep_network.operations`."""
        p = parameters
        return network.operations(p.layers, p.frozen, p.width, p.batch)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """optax.partition: gradients of all layers, of which those of the frozen ones are set to zero."""
        import jax
        import optax

        p = parameters
        labels = ["frozen"] * p.frozen + ["trained"] * (p.layers - p.frozen)
        optimizer = optax.partition({"frozen": optax.set_to_zero(), "trained": optax.sgd(p.learning_rate)}, labels)
        loss_of = network.jax_loss(network.jax_layer)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            layers, optimizer_state = state
            loss, gradients = jax.value_and_grad(loss_of)(layers, batch)
            updates, optimizer_state = optimizer.update(gradients, optimizer_state, layers)
            return (optax.apply_updates(layers, updates), optimizer_state), loss

        layers = tools.put(network.as_layers(arrays.state))
        return Program(
            state=(layers, optimizer.init(layers)),
            step=step,
            batches=tools.put(arrays.batches),
            export=lambda state, loss: {**network.named(state[0]), "loss": loss},
        )

    @variant("jax/jit-trained-only")
    def jit_trained_only(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiated by the trained layers alone."""
        import jax
        import optax

        p = parameters
        optimizer = optax.sgd(p.learning_rate)
        loss_of = network.jax_loss(network.jax_layer)

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            frozen, trained, optimizer_state = state
            loss, gradients = jax.value_and_grad(lambda trained: loss_of(frozen + trained, batch))(trained)
            updates, optimizer_state = optimizer.update(gradients, optimizer_state, trained)
            return (frozen, optax.apply_updates(trained, updates), optimizer_state), loss

        layers = tools.put(network.as_layers(arrays.state))
        frozen, trained = layers[: p.frozen], layers[p.frozen :]
        return Program(
            state=(frozen, trained, optimizer.init(trained)),
            step=jax.jit(step),
            batches=tools.put(arrays.batches),
            placed=True,
            export=lambda state, loss: {**network.named(state[0] + state[1]), "loss": loss},
        )

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """requires_grad = False."""
        return _torch_program(parameters, arrays, tools, requires_grad=False)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """requires_grad = False; forward pass and loss under torch.compile."""
        return _torch_program(parameters, arrays, tools, requires_grad=False, compiled=True)

    @variant("pytorch/left-out")
    def left_out(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The optimiser is not given the frozen layers, whose gradients are computed all the same."""
        return _torch_program(parameters, arrays, tools, requires_grad=True)


def _torch_program(
    parameters: FreezeLayers.Parameters, arrays: Arrays, tools: Tools, *, requires_grad: bool, compiled: bool = False
) -> Program:
    import torch

    place: Callable[[Any], Any] = torch.compile if compiled else (lambda function: function)
    model = network.torch_network(tools.put(network.as_layers(arrays.state)))
    model[: 2 * parameters.frozen].requires_grad_(requires_grad)

    @place
    def mean_squared_error(model: Any, batch: Any) -> Any:
        return ((model(batch["inputs"]) - batch["targets"]) ** 2).mean()

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer = state
        model.zero_grad()
        loss = mean_squared_error(model, batch)
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    optimizer = torch.optim.SGD(model[2 * parameters.frozen :].parameters(), lr=parameters.learning_rate)
    return Program(
        state=(model, optimizer),
        step=step,
        batches=tools.put(arrays.batches),
        placed=True,
        export=lambda state, loss: {**network.torch_named(state[0]), "loss": loss},
    )
