"""Train with float32 weights and products in a narrow type."""

from typing import Any

from accelbench.workload import Arrays, Program, Tools, variant
from accelbench.workloads import _deep_network as network
from accelbench.workloads import _training as training

SCALE = 2.0**10
"""Initial factor of the loss in float16: without it, small gradients would be zero."""


class MixedPrecision(network.DeepNetwork):
    """Train a network of tanh layers by gradient descent, with products in the type of the precision policy.

    Row 63 of the claims: "I've found PyTorch's AMP more ergonomic"; in JAX "you manage precision manually", and "you're
    responsible for loss scaling". Run it with the precision bfloat16 or float16. Weights and their update are in
    float32, forward and backward pass in the narrow type: by torch.autocast and torch.amp.GradScaler, or by casting the
    weights inside the loss and flax's DynamicScale. The variants called `full` compute everything in float32, with the
    same tolerance.
    """

    name = "mixed-precision"
    modes = {"jax": ("jit",), "pytorch": ("eager", "compile"), "pytorch_fused": ("eager", "compile")}
    libraries = {"jax": ("flax.training.dynamic_scale",)}

    def jax(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Cast the weights to the narrow type inside the loss; in float16, also scale the loss."""
        return _jax_program(parameters, arrays, tools, low_precision=True)

    @variant("jax/jit-full")
    def jit_full(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute everything in float32."""
        return training.jit_donating(_jax_program(parameters, arrays, tools, low_precision=False))

    def pytorch(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.autocast; in float16 also torch.amp.GradScaler, which waits for a GPU in every step.

        It reads whether a gradient has overflowed, and then skips the step of the optimizer.
        """
        return _torch_program(parameters, arrays, tools, low_precision=True)

    def pytorch_fused(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use SGD with fused=True too, whose kernel unscales gradients and skips an overflow, so that nothing waits."""
        return _torch_program(parameters, arrays, tools, low_precision=True, fused=True)

    @variant("pytorch/eager-full", in_mode="eager")
    def eager_full(self, parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute everything in float32."""
        return _torch_program(parameters, arrays, tools, low_precision=False)


def _jax_program(
    parameters: network.DeepNetwork.Parameters, arrays: Arrays, tools: Tools, *, low_precision: bool
) -> Program:
    """Return a training program with weights in at least float32.

    If `low_precision`, matrix products have the type of the precision policy, such as bfloat16.
    """
    import jax
    import jax.numpy as jnp
    from flax.training.dynamic_scale import DynamicScale

    layers, examples = tools.put((network.as_layers(arrays.state), arrays.batches[0]))
    policy_type = examples["inputs"].dtype  # `put` has converted floats to the type of the precision policy
    weight_type = jnp.promote_types(policy_type, jnp.float32)
    layers, examples = _cast((layers, examples), weight_type)
    product_type = policy_type if low_precision else weight_type
    scales_loss = low_precision and policy_type == jnp.float16

    def loss_of(layers: Any, batch: Any) -> Any:
        """Compute outputs in `product_type`, and return their mean squared error in `weight_type`."""
        x = batch["inputs"].astype(product_type)
        for layer in _cast(layers, product_type):
            x = network.jax_layer(x, layer)
        return ((x.astype(weight_type) - batch["targets"]) ** 2).mean()

    def descend(layers: Any, gradients: Any) -> Any:
        """Return the layers after a step of gradient descent."""
        return jax.tree.map(lambda weight, gradient: weight - parameters.learning_rate * gradient, layers, gradients)

    def plain_step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch without scaling the loss; return the next state and the loss."""
        layers, no_scale = state
        loss, gradients = jax.value_and_grad(loss_of)(layers, batch)
        return (descend(layers, gradients), no_scale), loss

    def scaled_step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch with a scaled loss; return the next state and the loss.

        Without scaling, small gradients would be zero in float16.
        """
        layers, scale = state
        new_scale, finite, loss, gradients = scale.value_and_grad(loss_of)(layers, batch)
        updated_layers = descend(layers, gradients)
        # If a gradient overflows, the weights stay unchanged.
        new_layers = jax.tree.map(lambda new, old: jnp.where(finite, new, old), updated_layers, layers)
        return (new_layers, new_scale), loss

    def export(state: Any, loss: Any) -> dict[str, Any]:
        layers, _scale = state
        return {**network.as_state(layers), "loss": loss}

    return Program(
        state=(layers, DynamicScale(scale=jnp.float32(SCALE)) if scales_loss else ()),
        step=scaled_step if scales_loss else plain_step,
        batches=(examples,),
        donate=True,
        export=export,
    )


def _cast(arrays: Any, dtype: Any) -> Any:
    """Return the pytree with its JAX arrays converted to this type."""
    import jax

    return jax.tree.map(lambda array: array.astype(dtype), arrays)


def _torch_program(
    parameters: network.DeepNetwork.Parameters,
    arrays: Arrays,
    tools: Tools,
    *,
    low_precision: bool,
    fused: bool | None = None,
) -> Program:
    """Return a training program with weights in at least float32, whose loss runs in the variant's mode.

    If `low_precision`, matrix products have the type of the precision policy, such as bfloat16. `fused` is SGD's; None
    is PyTorch's default for the device.
    """
    import torch

    layers, examples = tools.put((network.as_layers(arrays.state), arrays.batches[0]))
    policy_type, device = examples["inputs"].dtype, examples["inputs"].device.type
    weight_type = torch.promote_types(policy_type, torch.float32)
    layers = [{name: tensor.to(weight_type) for name, tensor in layer.items()} for layer in layers]
    model = network.torch_network(layers)
    autocasts = low_precision and policy_type != weight_type  # a policy of float32 needs no casts

    def mean_squared_error(model: Any, batch: Any) -> Any:
        """Return the loss in `weight_type`; products have the type of the precision policy if autocast is enabled."""
        with torch.autocast(device, dtype=policy_type if autocasts else None, enabled=autocasts):
            return torch.nn.functional.mse_loss(model(batch["inputs"]).to(weight_type), batch["targets"])

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Train on one batch; return the state, changed in place, and the loss.

        The scaler does nothing unless the type of the precision policy is float16.
        """
        model, optimizer, scaler = state
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return state, loss.detach()

    def export(state: Any, loss: Any) -> dict[str, Any]:
        model, _optimizer, _scaler = state
        return {**network.torch_as_state(model), "loss": loss}

    loss_of = tools.in_mode(mean_squared_error)
    optimizer = torch.optim.SGD(model.parameters(), lr=parameters.learning_rate, fused=fused)
    scaler = torch.amp.GradScaler(device, init_scale=SCALE, enabled=autocasts and policy_type == torch.float16)
    return Program(
        state=(model, optimizer, scaler),
        step=step,
        batches=({name: tensor.to(weight_type) for name, tensor in examples.items()},),
        placed=True,
        export=export,
    )
