"""Measure activation checkpointing: activations that are recomputed need not be kept."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from pydantic import Field

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _deep_network as network
from accelbench.workloads import _training as training

UNFUSED = {"xla_disable_hlo_passes": "fusion"}
"""Options of XLA for CPUs. On GPUs and TPUs, other passes fuse, so they change nothing there."""


class ActivationCheckpointing(network.DeepNetwork):
    """Train a network of tanh layers (width x width) by gradient descent, with activations kept or recomputed.

    Row 58 of the claims: gradient checkpointing is there "out of the box" in torch.utils.checkpoint; jax.checkpoint is
    its counterpart. Both divide the layers into segments, keep the input of each segment, and recompute the rest in the
    backward pass, which trades time for memory (Chen and others 2016). All variants compute the same numbers. In an
    unrolled loop, jax.checkpoint marks the recomputation so that it is not merged with the forward pass; XLA for CPUs
    drops the mark and merges both, whatever the policy. In the body of a scan they are two loops, which XLA keeps
    apart.
    """

    name = "activation-checkpointing"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(network.DeepNetwork.Parameters):
        """Describe the network and the batch: `batch` x `width` numbers are kept for each layer."""

        segment: int = Field(default=4, ge=1, le=1000, description="Layers in a segment.")

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations that XLA does not recompute by itself."""
        return _jax_program(parameters, arrays, tools, lambda through: through)

    @variant("jax/jit-unfused")
    def jit_unfused(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations and, on a CPU, fuse nothing: shows the gain of fusion alone (row 10 of the claims)."""
        import jax

        program = self.jax(parameters, arrays, tools)
        return replace(program, step=jax.jit(program.step, donate_argnums=0, compiler_options=UNFUSED), placed=True)

    @variant("jax/jit-checkpoint")
    def jit_checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap each segment in jax.checkpoint. XLA for CPUs merges the recomputation with the forward pass."""
        import jax

        return training.jit_donating(_jax_program(parameters, arrays, tools, jax.checkpoint))

    @variant("jax/jit-scanned")
    def jit_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations, in a scan over the segments."""
        return training.jit_donating(_jax_scanned_program(parameters, arrays, tools, lambda through: through))

    @variant("jax/jit-checkpoint-scanned")
    def jit_checkpoint_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap the body of a scan over the segments in jax.checkpoint, which no compiler undoes."""
        import jax

        # Inside a scan no barrier is needed, according to JAX's documentation.
        place = partial(jax.checkpoint, prevent_cse=False)
        return training.jit_donating(_jax_scanned_program(parameters, arrays, tools, place))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations."""
        return _torch_program(parameters, arrays, tools, lambda segment, x: segment(x))

    @variant("pytorch/checkpoint")
    def checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap each segment in torch.utils.checkpoint, eagerly."""
        return _torch_program(parameters, arrays, tools, _torch_checkpoint)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations that torch.compile does not recompute by itself."""
        return _torch_program(parameters, arrays, tools, lambda segment, x: segment(x), compiled=True)

    @variant("pytorch/compile-checkpoint")
    def torch_compile_checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap each segment in torch.utils.checkpoint, under torch.compile."""
        return _torch_program(parameters, arrays, tools, _torch_checkpoint, compiled=True)


def _jax_program(
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, place: Callable[[Any], Any]
) -> Program:
    def through(x: Any, layers: Any) -> Any:
        for layer in layers:
            x = network.jax_layer(x, layer)
        return x

    loss_of = network.jax_loss(place(through))

    return Program(
        state=tools.put(network.as_layers(arrays.state)),
        step=_jax_step(parameters, lambda layers, batch: loss_of(_segments(layers, parameters), batch)),
        batches=tools.put(arrays.batches),
        donate=True,
        export=lambda layers, loss: {**network.named(layers), "loss": loss},
    )


def _jax_scanned_program(
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, place: Callable[[Any], Any]
) -> Program:
    """Stack the layers of whole segments, (segments, layers, ...); remaining layers form one more segment."""
    import jax
    import numpy as np

    layers, segment = network.as_layers(arrays.state), parameters.segment
    segments = len(layers) // segment
    stacked = {
        name: np.stack([layer[name] for layer in layers])[: segments * segment].reshape(segments, segment, *array.shape)
        for name, array in layers[0].items()
    }

    def through(x: Any, layers: Any) -> tuple[Any, None]:
        for layer in layers:
            x = network.jax_layer(x, layer)
        return x, None

    def through_stacked(x: Any, stacked: Any) -> tuple[Any, None]:
        return through(x, [{name: array[number] for name, array in stacked.items()} for number in range(segment)])

    def loss_of(layers: Any, batch: Any) -> Any:
        stacked, rest = layers
        x, _ = jax.lax.scan(place(through_stacked), batch["inputs"], stacked)
        x, _ = place(through)(x, rest)
        return ((x - batch["targets"]) ** 2).mean()

    def export(layers: Any, loss: Any) -> dict[str, Any]:
        stacked, rest = layers
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in stacked.items()}
        unstacked = [{name: array[number] for name, array in flat.items()} for number in range(segments * segment)]
        return {**network.named(unstacked + rest), "loss": loss}

    return Program(
        state=tools.put((stacked, layers[segments * segment :])),
        step=_jax_step(parameters, loss_of),
        batches=tools.put(arrays.batches),
        donate=True,
        export=export,
    )


def _jax_step(parameters: ActivationCheckpointing.Parameters, loss_of: Callable[[Any, Any], Any]) -> training.Step:
    """Make a step of plain gradient descent."""
    import jax

    def step(layers: Any, batch: Any) -> tuple[Any, Any]:
        loss, gradients = jax.value_and_grad(loss_of)(layers, batch)
        new = jax.tree.map(lambda number, gradient: number - parameters.learning_rate * gradient, layers, gradients)
        return new, loss

    return step


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

    layers = tools.put(network.as_layers(arrays.state))
    model = torch.nn.Sequential(*map(network.torch_network, _segments(layers, parameters)))

    def mean_squared_error(model: Any, batch: Any) -> Any:
        x = batch["inputs"]
        for segment in model:
            x = through(segment, x)
        return torch.nn.functional.mse_loss(x, batch["targets"])

    loss_of = torch.compile(mean_squared_error, fullgraph=True) if compiled else mean_squared_error
    return network.torch_training(model, model.parameters(), loss_of, parameters.learning_rate, arrays, tools)


def _torch_checkpoint(segment: Any, x: Any) -> Any:
    """Checkpoint without preserving random state, as PyTorch advises where nothing is random."""
    from torch.utils.checkpoint import checkpoint

    return checkpoint(segment, x, use_reentrant=False, preserve_rng_state=False)
