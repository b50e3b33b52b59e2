"""Activation checkpointing: what is computed again need not be kept."""

from typing import TYPE_CHECKING, Any

from pydantic import Field

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


class ActivationCheckpointing(Workload):
    """A step of gradient descent on a network of tanh layers (width x width), with activations kept or computed again.

    Row 58 of the claims: gradient checkpointing is there "out of the box" in torch.utils.checkpoint; jax.checkpoint is
    its counterpart. Both divide the layers into segments, keep what goes into each, and compute the rest once more on
    the way back: time for memory (Chen and others 2016). All variants compute the same numbers.
    """

    name = "activation-checkpointing"
    moves_once = True
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """The network and the batch: `batch` x `width` numbers are kept for each layer."""

        layers: int = Field(default=16, ge=1, le=1000, description="Layers in all.")
        segment: int = Field(default=4, ge=1, le=1000, description="Layers in a segment.")
        width: int = Field(default=256, ge=1, le=65_536, description="Of every layer.")
        batch: int = Field(default=4096, ge=1, le=1_048_576, description="Examples in a step.")
        learning_rate: float = Field(default=0.1, gt=0, le=10, description="Step of the gradient descent.")

    def measure(self, parameters: Parameters) -> Measure:
        """Three steps."""
        del parameters
        return Measure(parity_units=3)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """See `_deep_network.draw`."""
        return network.draw(parameters.layers, parameters.width, parameters.batch, rng)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """See `_deep_network.trained`."""
        return network.trained(arrays, parameters.learning_rate, units)

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """See `_deep_network.cost`: as if nothing were computed twice."""
        p = parameters
        return network.cost(p.layers, 0, p.width, p.batch, float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """See `_deep_network.operations`."""
        p = parameters
        return network.operations(p.layers, 0, p.width, p.batch)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything is kept, as far as XLA sees fit."""
        return _jax_program(parameters, arrays, tools, lambda through: through)

    @variant("jax/jit-checkpoint")
    def jit_checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """jax.checkpoint around each segment."""
        from dataclasses import replace

        import jax

        program = _jax_program(parameters, arrays, tools, jax.checkpoint)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything is kept."""
        return _torch_program(parameters, arrays, tools, lambda segment, x: segment(x))

    @variant("pytorch/checkpoint")
    def checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.utils.checkpoint around each segment, eager."""
        from torch.utils.checkpoint import checkpoint

        return _torch_program(parameters, arrays, tools, lambda segment, x: checkpoint(segment, x, use_reentrant=False))

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything is kept, as far as torch.compile sees fit."""
        return _torch_program(parameters, arrays, tools, lambda segment, x: segment(x), compiled=True)


def _jax_program(
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, place: "Callable[[Any], Any]"
) -> Program:
    import jax

    def through(x: Any, layers: Any) -> Any:
        for layer in layers:
            x = network.jax_layer(x, layer)
        return x

    loss_of = network.jax_loss(place(through))

    def step(layers: Any, batch: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(lambda layers: loss_of(_segments(layers, parameters), batch))(layers)
        new = jax.tree.map(lambda number, gradient: number - parameters.learning_rate * gradient, layers, gradients)
        return new, loss

    return Program(
        state=tools.put(network.as_layers(arrays.state)),
        step=step,
        batches=tools.put(arrays.batches),
        export=lambda layers, loss: {**network.named(layers), "loss": loss},
    )


def _segments(layers: Any, parameters: ActivationCheckpointing.Parameters) -> list[Any]:
    return [layers[first : first + parameters.segment] for first in range(0, parameters.layers, parameters.segment)]


def _torch_program(
    parameters: ActivationCheckpointing.Parameters,
    arrays: Arrays,
    tools: Tools,
    through: "Callable[[Any, Any], Any]",
    *,
    compiled: bool = False,
) -> Program:
    import torch

    place: Callable[[Any], Any] = torch.compile if compiled else (lambda function: function)
    model = network.torch_network(tools.put(network.as_layers(arrays.state)))
    each = 2 * parameters.segment

    @place
    def mean_squared_error(model: Any, batch: Any) -> Any:
        x = batch["inputs"]
        for first in range(0, len(model), each):
            x = through(model[first : first + each], x)
        return ((x - batch["targets"]) ** 2).mean()

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer = state
        optimizer.zero_grad()
        loss = mean_squared_error(model, batch)
        loss.backward()
        optimizer.step()
        return state, loss.detach()

    optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)
    return Program(
        state=(model, optimizer),
        step=step,
        batches=tools.put(arrays.batches),
        placed=True,
        export=lambda state, loss: {**network.torch_named(state[0]), "loss": loss},
    )
