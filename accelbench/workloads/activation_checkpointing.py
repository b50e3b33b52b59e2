"""Activation checkpointing: what is computed again need not be kept."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pydantic import Field

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _deep_network as network


class ActivationCheckpointing(network.DeepNetwork):
    """A step of gradient descent on a network of tanh layers (width x width), with activations kept or computed again.

    Row 58 of the claims: gradient checkpointing is there "out of the box" in torch.utils.checkpoint; jax.checkpoint is
    its counterpart. Both divide the layers into segments, keep what goes into each, and compute the rest once more on
    the way back: time for memory (Chen and others 2016). All variants compute the same numbers.
    """

    name = "activation-checkpointing"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(network.DeepNetwork.Parameters):
        """The network and the batch: `batch` x `width` numbers are kept for each layer."""

        segment: int = Field(default=4, ge=1, le=1000, description="Layers in a segment.")

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything is kept, as far as XLA sees fit."""
        return _jax_program(parameters, arrays, tools, lambda through: through)

    @variant("jax/jit-checkpoint")
    def jit_checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """jax.checkpoint around each segment."""
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
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, place: Callable[[Any], Any]
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
    through: Callable[[Any, Any], Any],
    *,
    compiled: bool = False,
) -> Program:
    import torch

    model = network.torch_network(tools.put(network.as_layers(arrays.state)))
    each = 2 * parameters.segment

    def mean_squared_error(model: Any, batch: Any) -> Any:
        x = batch["inputs"]
        for first in range(0, len(model), each):
            x = through(model[first : first + each], x)
        return ((x - batch["targets"]) ** 2).mean()

    loss_of = torch.compile(mean_squared_error) if compiled else mean_squared_error
    return network.torch_training(model, model.parameters(), loss_of, parameters.learning_rate, arrays, tools)
