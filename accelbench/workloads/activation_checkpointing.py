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
"""Options that turn off XLA's fusion on CPUs. On GPUs and TPUs other passes fuse, so the options have no effect."""


class ActivationCheckpointing(network.DeepNetwork):
    """Train a network of tanh layers (width x width) by gradient descent, with activations kept or recomputed.

    Row 58 of the claims: PyTorch has gradient checkpointing "out of the box", torch.utils.checkpoint; jax.checkpoint is
    its counterpart. Both divide the layers into segments, keep the input of each segment, and recompute the rest in the
    backward pass, which trades time for memory (Chen and others 2016). All variants compute the same numbers. In an
    unrolled loop, jax.checkpoint marks the recomputation so that it is not merged with the forward pass; XLA for CPUs
    drops the mark and merges both, whatever the policy. In a scan, forward pass and recomputation are two loops, which
    XLA does not merge.
    """

    name = "activation-checkpointing"
    modes = {"jax": ("jit",), "pytorch": ("eager", "compile")}

    class Parameters(network.DeepNetwork.Parameters):
        """Describe the network and the batch: `batch` x `width` numbers are kept for each layer."""

        segment: int = Field(default=4, ge=1, le=1000, description="Layers in a segment.")

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations, except those that XLA decides to recompute."""
        return _jax_program(parameters, arrays, tools, _without_checkpoint)

    @variant("jax/jit-unfused")
    def jit_unfused(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations and turn off XLA's fusion on CPUs, to measure what fusion alone gains."""
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
        """Keep all activations, and apply the segments of layers in a scan."""
        return training.jit_donating(_jax_scanned_program(parameters, arrays, tools, _without_checkpoint))

    @variant("jax/jit-checkpoint-scanned")
    def jit_checkpoint_scanned(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap the body of a scan over the segments in jax.checkpoint; XLA keeps this recomputation."""
        import jax

        # JAX's documentation says that the body of a scan needs no barrier against common subexpressions.
        checkpoint = partial(jax.checkpoint, prevent_cse=False)
        return training.jit_donating(_jax_scanned_program(parameters, arrays, tools, checkpoint))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep all activations, as autograd does by default, except those that torch.compile decides to recompute."""
        return _torch_program(parameters, arrays, tools, _apply_torch_segment)

    @variant("pytorch/checkpoint", in_mode="eager")
    def checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap each segment in torch.utils.checkpoint, eagerly."""
        return _torch_program(parameters, arrays, tools, _apply_torch_segment_in_checkpoint)

    @variant("pytorch/compile-checkpoint", in_mode="compile")
    def torch_compile_checkpoint(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Wrap each segment in torch.utils.checkpoint, under torch.compile."""
        return _torch_program(parameters, arrays, tools, _apply_torch_segment_in_checkpoint)


def _without_checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function unchanged; this takes the place of jax.checkpoint, so that all activations are kept."""
    return function


def _jax_program(
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, checkpoint: Callable[[Any], Any]
) -> Program:
    """Return a training program that applies the segments one after another, in a Python loop.

    `checkpoint` wraps the function that applies a segment, (x, layers) -> x, or returns it unchanged.
    """

    def apply_segment(x: Any, layers: Any) -> Any:
        """Return x after the layers of a segment."""
        for layer in layers:
            x = network.jax_layer(x, layer)
        return x

    loss_of_segments = network.jax_loss(checkpoint(apply_segment))

    def loss_of(layers: Any, batch: Any) -> Any:
        """Return the mean squared error of the network, divided into segments."""
        return loss_of_segments(_split_into_segments(layers, parameters), batch)

    return Program(
        state=tools.put(network.as_layers(arrays.state)),
        step=_jax_step(parameters, loss_of),
        batches=tools.put(arrays.batches),
        donate=True,
        export=lambda layers, loss: {**network.as_state(layers), "loss": loss},
    )


def _jax_scanned_program(
    parameters: ActivationCheckpointing.Parameters, arrays: Arrays, tools: Tools, checkpoint: Callable[[Any], Any]
) -> Program:
    """Return a training program that scans over the segments, then applies any last layers, too few for a segment.

    `checkpoint` wraps the function that applies a segment, (x, layers) -> (x, None), or returns it unchanged.
    """
    import jax
    import numpy as np

    layers, segment_layers = network.as_layers(arrays.state), parameters.segment
    segments = len(layers) // segment_layers
    scanned_layers = segments * segment_layers
    stacked = {}  # arrays of all scanned layers: (segments, layers of a segment, ...)
    for name, array in layers[0].items():
        flat = np.stack([layer[name] for layer in layers])[:scanned_layers]
        stacked[name] = flat.reshape(segments, segment_layers, *array.shape)

    def apply_layers(x: Any, layers: Any) -> tuple[Any, None]:
        """Return x after the layers, and None, because the body of a scan has to return a pair."""
        for layer in layers:
            x = network.jax_layer(x, layer)
        return x, None

    def apply_segment(x: Any, segment: Any) -> tuple[Any, None]:
        """Return x after a segment of stacked layers, and None for the scan."""
        return apply_layers(x, _unstack(segment, segment_layers))

    def loss_of(state: Any, batch: Any) -> Any:
        """Return the mean squared error of the outputs: scan the segments, then apply the last layers."""
        stacked, last_layers = state
        x, _ = jax.lax.scan(checkpoint(apply_segment), batch["inputs"], stacked)
        x, _ = checkpoint(apply_layers)(x, last_layers)
        return ((x - batch["targets"]) ** 2).mean()

    def export(state: Any, loss: Any) -> dict[str, Any]:
        """Return the loss and all weights, by the names that `reference` uses."""
        stacked, last_layers = state
        # (segments, layers of a segment, ...) becomes (layers, ...).
        flat = {name: array.reshape(-1, *array.shape[2:]) for name, array in stacked.items()}
        return {**network.as_state(_unstack(flat, scanned_layers) + last_layers), "loss": loss}

    return Program(
        state=tools.put((stacked, layers[scanned_layers:])),
        step=_jax_step(parameters, loss_of),
        batches=tools.put(arrays.batches),
        donate=True,
        export=export,
    )


def _unstack(stacked: Any, layers: int) -> list[Any]:
    """Return the first `layers` layers as a list; the first dimension of each array in `stacked` is the layer."""
    return [{name: array[index] for name, array in stacked.items()} for index in range(layers)]


def _jax_step(parameters: ActivationCheckpointing.Parameters, loss_of: Callable[[Any, Any], Any]) -> training.Step:
    """Return a step of plain gradient descent on `loss_of`, as a function (layers, batch) -> (new layers, loss)."""
    import jax

    def step(layers: Any, batch: Any) -> tuple[Any, Any]:
        """Update all layers by gradient descent; return the new layers and the loss."""
        loss, gradients = jax.value_and_grad(loss_of)(layers, batch)
        new_layers = jax.tree.map(
            lambda weight, gradient: weight - parameters.learning_rate * gradient, layers, gradients
        )
        return new_layers, loss

    return step


def _split_into_segments(layers: Any, parameters: ActivationCheckpointing.Parameters) -> list[Any]:
    """Split the layers into segments; the last segment may be shorter."""
    return [layers[first : first + parameters.segment] for first in range(0, parameters.layers, parameters.segment)]


def _torch_program(
    parameters: ActivationCheckpointing.Parameters,
    arrays: Arrays,
    tools: Tools,
    apply_segment: Callable[[Any, Any], Any],
) -> Program:
    """Return a training program that calls `apply_segment`, (segment, x) -> x, for each segment of layers.

    The loss runs in the variant's mode.
    """
    import torch

    layers = tools.put(network.as_layers(arrays.state))
    model = torch.nn.Sequential(*map(network.torch_network, _split_into_segments(layers, parameters)))

    def mean_squared_error(model: Any, batch: Any) -> Any:
        """Return the mean squared error of the last segment's outputs."""
        x = batch["inputs"]
        for segment in model:
            x = apply_segment(segment, x)
        return torch.nn.functional.mse_loss(x, batch["targets"])

    loss_of = tools.in_mode(mean_squared_error, one_program=True)
    return network.torch_training(model, model.parameters(), loss_of, parameters.learning_rate, arrays, tools)


def _apply_torch_segment(segment: Any, x: Any) -> Any:
    """Apply a segment, a torch.nn.Sequential of layers; autograd keeps its activations."""
    return segment(x)


def _apply_torch_segment_in_checkpoint(segment: Any, x: Any) -> Any:
    """Apply a segment; the backward pass recomputes its activations."""
    from torch.utils.checkpoint import checkpoint

    # Nothing in a segment is random, so no random state is preserved.
    return checkpoint(segment, x, use_reentrant=False, preserve_rng_state=False)
