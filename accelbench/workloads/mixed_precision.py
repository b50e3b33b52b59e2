"""Training with float32 weights and products in a narrow type."""

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

SCALE = 2.0**10
"""Of the loss, to begin with, in float16: what is too small for it would vanish from the gradients."""


class MixedPrecision(Workload):
    """A step of gradient descent on a network of tanh layers, its products in the type of the precision policy.

    Row 63 of the claims: "I've found PyTorch's AMP more ergonomic"; in JAX "you manage precision manually", and "you're
    responsible for loss scaling". Ask for it with the precision bfloat16 or float16. Weights and their update are in
    float32, forward and backward pass in the narrow type: by torch.autocast and torch.amp.GradScaler, or by casting the
    weights inside the loss and flax's DynamicScale. The variants called `full` compute everything in float32, and are
    held against the same tolerance.
    """

    name = "mixed-precision"
    moves_once = True
    modes = {"jax": ("jit",), "pytorch": ("eager",)}
    libraries = {"jax": ("flax.training.dynamic_scale",)}

    class Parameters(WorkloadParameters):
        """The network and the batch."""

        layers: int = Field(default=8, ge=1, le=1000, description="Layers in all.")
        width: int = Field(default=512, ge=1, le=65_536, description="Of every layer.")
        batch: int = Field(default=512, ge=1, le=1_048_576, description="Examples in a step.")
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
        """See `_deep_network.cost`: casts are no operations."""
        p = parameters
        return network.cost(p.layers, 0, p.width, p.batch, float_bytes)

    def operations(self, parameters: Parameters) -> Operations | None:
        """See `_deep_network.operations`."""
        p = parameters
        return network.operations(p.layers, 0, p.width, p.batch)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Weights are cast inside the loss, which is scaled in float16."""
        return _jax_program(parameters, arrays, tools, narrow=True)

    @variant("jax/jit-full")
    def jit_full(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything in float32."""
        from dataclasses import replace

        import jax

        program = _jax_program(parameters, arrays, tools, narrow=False)
        return replace(program, step=jax.jit(program.step), placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """torch.autocast, and torch.amp.GradScaler in float16."""
        return _torch_program(parameters, arrays, tools, narrow=True)

    @variant("pytorch/eager-full")
    def eager_full(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Everything in float32."""
        return _torch_program(parameters, arrays, tools, narrow=False)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Forward pass and loss under torch.compile, and under torch.autocast."""
        return _torch_program(parameters, arrays, tools, narrow=True, compiled=True)


def _jax_program(parameters: MixedPrecision.Parameters, arrays: Arrays, tools: Tools, *, narrow: bool) -> Program:
    import jax
    import jax.numpy as jnp
    from flax.training.dynamic_scale import DynamicScale

    given, examples = tools.put((network.as_layers(arrays.state), arrays.batches[0]))
    policy = examples["inputs"].dtype
    kept = jnp.promote_types(policy, jnp.float32)
    layers, examples = _cast((given, examples), kept)
    compute = policy if narrow else kept
    scaled = narrow and policy == jnp.float16

    def loss_of(layers: Any, batch: Any) -> Any:
        x = batch["inputs"].astype(compute)
        for layer in _cast(layers, compute):
            x = network.jax_layer(x, layer)
        return ((x.astype(kept) - batch["targets"]) ** 2).mean()

    def updated(layers: Any, gradients: Any) -> Any:
        return jax.tree.map(lambda number, gradient: number - parameters.learning_rate * gradient, layers, gradients)

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        layers, scale = state
        if not scaled:
            loss, gradients = jax.value_and_grad(loss_of)(layers, batch)
            return (updated(layers, gradients), scale), loss
        scale, finite, loss, gradients = scale.value_and_grad(loss_of)(layers, batch)
        new = jax.tree.map(lambda new, old: jnp.where(finite, new, old), updated(layers, gradients), layers)
        return (new, scale), loss

    return Program(
        state=(layers, DynamicScale(scale=jnp.float32(SCALE)) if scaled else ()),
        step=step,
        batches=(examples,),
        export=lambda state, loss: {**network.named(state[0]), "loss": loss},
    )


def _cast(arrays: Any, dtype: Any) -> Any:
    import jax

    return jax.tree.map(lambda array: array.astype(dtype), arrays)


def _torch_program(
    parameters: MixedPrecision.Parameters, arrays: Arrays, tools: Tools, *, narrow: bool, compiled: bool = False
) -> Program:
    import torch

    place: Callable[[Any], Any] = torch.compile if compiled else (lambda function: function)
    given, examples = tools.put((network.as_layers(arrays.state), arrays.batches[0]))
    policy, device = examples["inputs"].dtype, examples["inputs"].device.type
    kept = torch.promote_types(policy, torch.float32)
    model = network.torch_network([{name: array.to(kept) for name, array in layer.items()} for layer in given])
    mixed = narrow and policy != kept

    @place
    def mean_squared_error(model: Any, batch: Any) -> Any:
        with torch.autocast(device, dtype=policy if mixed else None, enabled=mixed):
            return torch.nn.functional.mse_loss(model(batch["inputs"]).to(kept), batch["targets"])

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer, scaler = state
        optimizer.zero_grad()
        loss = mean_squared_error(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return state, loss.detach()

    optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)
    scaler = torch.amp.GradScaler(device, init_scale=SCALE, enabled=mixed and policy == torch.float16)
    return Program(
        state=(model, optimizer, scaler),
        step=step,
        batches=({name: array.to(kept) for name, array in examples.items()},),
        placed=True,
        export=lambda state, loss: {**network.torch_named(state[0]), "loss": loss},
    )
