"""Compute the gradient of each example's loss, as differential privacy and influence functions need it."""

from collections.abc import Callable
from functools import partial
from itertools import pairwise
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
from accelbench.workloads import _placed as placed

if TYPE_CHECKING:
    from numpy.random import Generator

Layers = list[tuple[Any, Any]]
"""Weights (in, out) and biases (out,) of each layer, or their gradients; a batch of gradients has one more axis."""
GradientsOf = Callable[[Layers, Any, Any], Any]
"""Function (layers, inputs, targets) -> gradients of all examples: one `Layers` of batches, or a list of `Layers`."""


class PerExampleGradients(Workload):
    """Compute d/dw (net_w(x_i) - y_i)^2 for each example i, where net is linear, tanh, linear, tanh, linear.

    Row 40 of the claims: for per-example gradients in PyTorch "you'd loop over the batch and backprop individually
    (slow), or use hooks and gradient accumulation tricks (fragile)", where jax.vmap(jax.grad(loss)) is "clean,
    composable, and fast". torch.func has the same two functions. By hand, the gradient of a layer's weights for one
    example is the outer product of the layer's inputs and the gradient of its outputs, so one forward and one backward
    pass of the whole batch are enough. The gradients are `batch` times as many numbers as the weights; writing them is
    most of the work. A loop returns them in a list: stacking them would copy all of them.
    """

    name = "per-example-gradients"
    moves_once = True
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch."""

        inputs: int = Field(default=64, ge=1, le=65_536, description="Features of an example.")
        width: int = Field(default=256, ge=1, le=65_536, description="Width of both hidden layers.")
        batch: int = Field(default=32, ge=1, le=65_536, description="Examples, each with its own gradient.")

    def measure(self, parameters: Parameters) -> Measure:
        """Declare that a step computes gradients."""
        del parameters
        return Measure(differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights (in, out) and biases (out,) of three layers, inputs (batch, inputs) and targets (batch, 1)."""
        state = {}
        for index, (fan_in, fan_out) in enumerate(pairwise(_widths(parameters))):
            state[f"weights{index}"] = rng.standard_normal((fan_in, fan_out)) / fan_in**0.5
            state[f"biases{index}"] = 0.1 * rng.standard_normal(fan_out)
        inputs = rng.standard_normal((parameters.batch, parameters.inputs))
        return Arrays(state=state, batches=({"inputs": inputs, "targets": rng.standard_normal((len(inputs), 1))},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule in NumPy; no step changes the weights, so all steps give the same gradients."""
        import numpy as np

        del parameters, units
        batch = arrays.batches[0]
        layers = _chain_rule(np.tanh, _outer_products, _as_layers(arrays.state), batch["inputs"], batch["targets"])
        return _by_name(layers)

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the chain rule by hand; weights and examples are read, and every example's gradients are written.

        For each example: products forward, products backward through all layers but the first, and one multiplication
        for each gradient of a weight. For each hidden unit: bias and tanh, and three operations for tanh's derivative.
        """
        widths = _widths(parameters)
        weights = [fan_in * fan_out for fan_in, fan_out in pairwise(widths)]
        flops_of_example = 2 * sum(weights) + 2 * sum(weights[1:]) + sum(weights) + 5 * sum(widths[1:-1])
        gradients = parameters.batch * (sum(weights) + sum(widths[1:]))
        moved = gradients + sum(weights) + parameters.batch * (parameters.inputs + 1)
        return Cost(flops=float(parameters.batch * flops_of_example), bytes=float(moved * float_bytes))

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.vmap(jax.grad(loss))."""
        import jax
        import jax.numpy as jnp

        del parameters
        return _program(arrays, tools, jax.vmap(jax.grad(partial(_loss, jnp.tanh)), in_axes=(None, 0, 0)))

    @variant("jax/jit-by-hand")
    def jit_by_hand(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the chain rule by hand to the whole batch, under jit."""
        import jax.numpy as jnp

        del parameters
        return placed.jitted(_program(arrays, tools, partial(_chain_rule, jnp.tanh, _outer_products)))

    @variant("jax/loop")
    def jax_loop(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call a jitted gradient for one example after another."""
        import jax
        import jax.numpy as jnp

        del parameters
        gradient_of = jax.jit(jax.grad(partial(_loss, jnp.tanh)))

        def gradients_of(layers: Layers, inputs: Any, targets: Any) -> list[Layers]:
            """Return each example's gradients."""
            return [gradient_of(layers, x, y) for x, y in zip(inputs, targets, strict=True)]

        return placed.as_written(_program(arrays, tools, gradients_of, stack=jnp.stack))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.func.vmap(torch.func.grad(loss)), eagerly."""
        del parameters
        return _program(arrays, tools, _torch_vmap_of_grad())

    @variant("pytorch/compile", in_mode="compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile torch.func.vmap(torch.func.grad(loss)) as one graph."""
        del parameters
        return placed.compiled_as_one_graph(_program(arrays, tools, _torch_vmap_of_grad()), tools)

    @variant("pytorch/by-hand")
    def torch_by_hand(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the chain rule by hand to the whole batch, eagerly."""
        import torch

        del parameters
        return placed.as_written(_program(arrays, tools, partial(_chain_rule, torch.tanh, _torch_outer_products)))

    @variant("pytorch/outer-products")
    def outer_products(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Get the gradients of each layer's outputs from autograd; multiply them by the layer's inputs, as Opacus does.

        These outer products are the gradients of the layer's weights for each example.
        """
        import torch

        del parameters

        def gradients_of(layers: Layers, inputs: Any, targets: Any) -> Layers:
            """Keep each layer's inputs and outputs; one backward pass gives the gradients of all outputs."""
            x, kept_inputs, kept_outputs = inputs, [], []
            for weights, biases in layers:
                kept_inputs.append(x)
                # Autograd records from the first layer's outputs on, because the weights require no gradients.
                kept_outputs.append(torch.addmm(biases, x, weights).requires_grad_())
                x = torch.tanh(kept_outputs[-1])
            loss = ((kept_outputs[-1] - targets) ** 2).sum()
            d_outputs = torch.autograd.grad(loss, kept_outputs)
            return [(_torch_outer_products(x, d), d) for x, d in zip(kept_inputs, d_outputs, strict=True)]

        return placed.as_written(_program(arrays, tools, gradients_of))

    @variant("pytorch/loop")
    def torch_loop(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the loss of one example after another by autograd."""
        import torch

        del parameters

        def gradients_of(layers: Layers, inputs: Any, targets: Any) -> list[Layers]:
            """Return each example's gradients, from one backward pass for each."""
            variables = [variable.requires_grad_() for layer in layers for variable in layer]
            gradients = []
            for x, y in zip(inputs, targets, strict=True):
                # Gradients of weights and biases in turn.
                of_example = torch.autograd.grad(_loss(torch.tanh, layers, x, y), variables)
                gradients.append(list(zip(of_example[::2], of_example[1::2], strict=True)))
            return gradients

        return placed.as_written(_program(arrays, tools, gradients_of, stack=torch.stack))


def _widths(parameters: PerExampleGradients.Parameters) -> tuple[int, ...]:
    """Return the widths of the inputs, of both hidden layers and of the output."""
    return parameters.inputs, parameters.width, parameters.width, 1


def _as_layers(state: NamedArrays) -> Layers:
    """Return the workload's state as a list of layers."""
    return [(state[f"weights{index}"], state[f"biases{index}"]) for index in range(len(state) // 2)]


def _by_name(layers: Layers) -> dict[str, Any]:
    """Return arrays of layers by name: the inverse of `_as_layers`."""
    named: dict[str, Any] = {}
    for index, (weights, biases) in enumerate(layers):
        named |= {f"weights{index}": weights, f"biases{index}": biases}
    return named


def _loss(tanh: Callable[[Any], Any], layers: Layers, x: Any, y: Any) -> Any:
    """Return the squared error of the network for one example: x (inputs,) and y (1,)."""
    *hidden, (weights, biases) = layers
    for hidden_weights, hidden_biases in hidden:
        x = tanh(x @ hidden_weights + hidden_biases)
    return ((x @ weights + biases - y) ** 2).sum()


def _outer_products(x: Any, y: Any) -> Any:
    """Return the outer product of x[i] and y[i] for each i, in JAX and NumPy."""
    return x[:, :, None] * y[:, None, :]


def _torch_outer_products(x: Any, y: Any) -> Any:
    """Return the outer product of x[i] and y[i] for each i, in PyTorch, by einsum, as Opacus does."""
    import torch

    return torch.einsum("bi,bo->bio", x, y)


def _chain_rule(
    tanh: Callable[[Any], Any], outer: Callable[[Any, Any], Any], layers: Layers, inputs: Any, targets: Any
) -> Layers:
    """Return the gradients of all examples by hand, in any framework.

    `outer` makes the gradients of a layer's weights (batch, in, out) from the layer's inputs (batch, in) and the
    gradients of its outputs (batch, out). All other products are of matrices, for the whole batch.
    """
    activations = [inputs]  # activations[i] has the inputs of layer i
    for weights, biases in layers[:-1]:
        activations.append(tanh(activations[-1] @ weights + biases))
    weights, biases = layers[-1]
    d_outputs = 2 * (activations[-1] @ weights + biases - targets)
    gradients: Layers = []
    for index in reversed(range(len(layers))):
        x = activations[index]
        gradients.insert(0, (outer(x, d_outputs), d_outputs))
        if index > 0:  # nothing needs the gradient of the network's inputs
            weights, _biases = layers[index]
            d_outputs = (d_outputs @ weights.T) * (1 - x**2)  # x is the tanh of the outputs of the layer below
    return gradients


def _torch_vmap_of_grad() -> GradientsOf:
    """Return the counterpart of jax.vmap(jax.grad(loss)) in torch.func."""
    import torch

    gradients_of: GradientsOf = torch.func.vmap(torch.func.grad(partial(_loss, torch.tanh)), in_dims=(None, 0, 0))
    return gradients_of


def _program(
    arrays: Arrays,
    tools: Tools,
    gradients_of: GradientsOf,
    stack: Callable[[list[Any]], Any] | None = None,
) -> Program:
    """Return a program whose step is (layers, batch) -> (layers, gradients of all examples).

    `stack` is needed if `gradients_of` returns a list.
    """

    def step(layers: Layers, batch: Any) -> tuple[Layers, Any]:
        """Return the layers unchanged, and the gradients of all examples."""
        return layers, gradients_of(layers, batch["inputs"], batch["targets"])

    def export(_layers: Layers, gradients: Any) -> dict[str, Any]:
        """Return gradients by the names that `reference` uses, with the example as first axis."""
        if stack is None:
            return _by_name(gradients)
        examples = [_by_name(gradient) for gradient in gradients]
        return {name: stack([example[name] for example in examples]) for name in examples[0]}

    return Program(
        state=tools.put(_as_layers(arrays.state)),
        step=step,
        batches=tools.put(arrays.batches),
        export=export,
    )
