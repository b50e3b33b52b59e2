"""Train with float32 weights and products in a narrow type."""

from typing import Any

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _deep_network as network
from accelbench.workloads import _training as training

SCALE = 2.0**10
"""Initial scale of the loss in float16, in which small gradients would vanish."""


class MixedPrecision(network.DeepNetwork):
    """Train a network of tanh layers by gradient descent, with products in the type of the precision policy.

    Row 63 of the claims: "I've found PyTorch's AMP more ergonomic"; in JAX "you manage precision manually", and "you're
    responsible for loss scaling". Run it with the precision bfloat16 or float16. Weights and their update are in
    float32, forward and backward pass in the narrow type: by torch.autocast and torch.amp.GradScaler, or by casting the
    weights inside the loss and flax's DynamicScale. The variants called `full` compute everything in float32, with the
    same tolerance.
    """

    name = "mixed-precision"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}
    libraries = {"jax": ("flax.training.dynamic_scale",)}

    def jax(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Cast weights inside the loss, and scale the loss in float16."""
        return _jax_program(parameters, arrays, tools, narrow=True)

    @variant("jax/jit-full")
    def jit_full(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute everything in float32."""
        return training.jit_donating(_jax_program(parameters, arrays, tools, narrow=False))

    def pytorch(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.autocast and, in float16, torch.amp.GradScaler, which waits for a GPU in every step."""
        return _torch_program(parameters, arrays, tools, narrow=True)

    @variant("pytorch/eager-full")
    def eager_full(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute everything in float32."""
        return _torch_program(parameters, arrays, tools, narrow=False)

    @variant("pytorch/compile")
    def torch_compile(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile forward pass and loss with torch.compile, under torch.autocast."""
        return _torch_program(parameters, arrays, tools, narrow=True, compiled=True)


def _jax_program(parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools, *, narrow: bool) -> Program:
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
        donate=True,
        export=lambda state, loss: {**network.named(state[0]), "loss": loss},
    )


def _cast(arrays: Any, dtype: Any) -> Any:
    import jax

    return jax.tree.map(lambda array: array.astype(dtype), arrays)


def _torch_program(
    parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools, *, narrow: bool, compiled: bool = False
) -> Program:
    import torch

    given, examples = tools.put((network.as_layers(arrays.state), arrays.batches[0]))
    policy, device = examples["inputs"].dtype, examples["inputs"].device.type
    kept = torch.promote_types(policy, torch.float32)
    model = network.torch_network([{name: array.to(kept) for name, array in layer.items()} for layer in given])
    mixed = narrow and policy != kept

    def mean_squared_error(model: Any, batch: Any) -> Any:
        with torch.autocast(device, dtype=policy if mixed else None, enabled=mixed):
            return torch.nn.functional.mse_loss(model(batch["inputs"]).to(kept), batch["targets"])

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        model, optimizer, scaler = state
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return state, loss.detach()

    loss_of = torch.compile(mean_squared_error) if compiled else mean_squared_error
    optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate)
    scaler = torch.amp.GradScaler(device, init_scale=SCALE, enabled=mixed and policy == torch.float16)
    return Program(
        state=(model, optimizer, scaler),
        step=step,
        batches=({name: array.to(kept) for name, array in examples.items()},),
        placed=True,
        export=lambda state, loss: {**network.torch_named(state[0]), "loss": loss},
    )
