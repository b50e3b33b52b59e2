"""Compute a loss and its gradient: together, or by two separate calls."""

from collections.abc import Callable
from typing import Any

from pydantic import Field

from accelbench.workload import Arrays, Cost, Measure, NamedArrays, Program, Tools, WorkloadParameters, variant
from accelbench.workloads import _deep_network as network
from accelbench.workloads import _placed as placed

LossAndGradient = Callable[[network.Layers, Any], tuple[Any, network.Layers]]
"""Function (layers, batch) -> the loss, and its gradient with respect to each layer."""


class JointGradient(network.DeepNetwork):
    """Compute the mean squared error of a network of tanh layers (width x width), and its gradient; train nothing.

    Row 43 of the claims: jax.value_and_grad "returns both the function value and its gradient in one pass — more
    efficient than computing them separately". With L layers, loss and gradient together need 3 L - 1 matrix products;
    alone, the loss needs L of these and the gradient all of them, so two separate calls run 4 L - 1. In one jitted
    function, XLA finds the forward pass that both share, and runs it once. PyTorch's autograd computes the loss before
    it differentiates, so the loss is computed twice only if a user calls it twice.
    """

    name = "joint-gradient"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Describe the network and the batch."""

        layers: int = Field(default=3, ge=1, le=1000, description="Number of layers.")
        width: int = Field(default=256, ge=1, le=65_536, description="Width of every layer.")
        batch: int = Field(default=256, ge=1, le=1_048_576, description="Examples in a step.")

    def measure(self, parameters: Parameters) -> Measure:
        """Declare that a step computes gradients."""
        del parameters
        return Measure(differentiates=True)

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Apply the chain rule in NumPy; no step changes the weights, so all steps give the same result."""
        del parameters, units
        loss, gradients = network.loss_and_gradients(network.as_layers(arrays.state), arrays.batches[0])
        return {**network.as_state(gradients), "loss": loss}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count products, biases, tanh with its derivative, and the loss; weights are read, and gradients written."""
        layers, width, batch = parameters.layers, parameters.width, parameters.batch
        products = 2.0 * batch * width**2 * network.count_products(layers, layers)
        # Each activation: bias and tanh forward; times 1 - tanh^2 and the bias gradient backward. Each output: loss.
        elementwise = batch * width * (6 * layers + 4)
        moved = 2 * layers * width * (width + 1) + 2 * batch * width
        return Cost(flops=products + elementwise, bytes=float(moved) * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.value_and_grad."""
        import jax

        del parameters
        return _program(arrays, tools, jax.value_and_grad(network.jax_loss(network.jax_layer)))

    @variant("jax/jit-both")
    def jit_both(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the loss and jax.grad(loss) in one jitted function."""
        import jax

        del parameters
        loss_of = network.jax_loss(network.jax_layer)
        gradient_of = jax.grad(loss_of)
        # `given` is (layers, batch).
        return placed.jitted(_program(arrays, tools, lambda *given: (loss_of(*given), gradient_of(*given))))

    @variant("jax/jit-separate")
    def jit_separate(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Jit the loss and jax.grad(loss) each on its own, and call both."""
        import jax

        del parameters
        loss_of = network.jax_loss(network.jax_layer)
        loss_alone, gradient_alone = jax.jit(loss_of), jax.jit(jax.grad(loss_of))
        # `given` is (layers, batch).
        return placed.as_written(_program(arrays, tools, lambda *given: (loss_alone(*given), gradient_alone(*given))))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the loss, and differentiate it by autograd."""
        del parameters
        return _program(arrays, tools, _torch_loss_and_gradient)

    @variant("pytorch/func")
    def torch_func(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.func.grad_and_value, eagerly."""
        del parameters
        return placed.as_written(_program(arrays, tools, _torch_value_and_grad()))

    @variant("pytorch/compile", in_mode="compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile torch.func.grad_and_value as one graph."""
        del parameters
        return placed.compiled_as_one_graph(_program(arrays, tools, _torch_value_and_grad()), tools)

    @variant("pytorch/separate")
    def torch_separate(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the loss without autograd; compute it a second time to differentiate it."""
        import torch

        del parameters

        def loss_and_gradient(layers: network.Layers, batch: Any) -> tuple[Any, network.Layers]:
            """Return the loss from one pass, and the gradient from another pass."""
            with torch.no_grad():
                loss = _torch_loss(layers, batch)
            return loss, _torch_loss_and_gradient(layers, batch)[1]

        return placed.as_written(_program(arrays, tools, loss_and_gradient))


def _torch_loss(layers: network.Layers, batch: Any) -> Any:
    """Return the mean squared error in PyTorch."""
    import torch

    x = batch["inputs"]
    for layer in layers:
        x = torch.tanh(torch.addmm(layer["biases"], x, layer["weights"]))
    return torch.nn.functional.mse_loss(x, batch["targets"])


def _torch_loss_and_gradient(layers: network.Layers, batch: Any) -> tuple[Any, network.Layers]:
    """Return the loss and its gradient by autograd."""
    import torch

    variables = [variable.requires_grad_() for layer in layers for variable in layer.values()]
    loss = _torch_loss(layers, batch)
    gradients = iter(torch.autograd.grad(loss, variables))
    return loss.detach(), [{name: next(gradients) for name in layer} for layer in layers]


def _torch_value_and_grad() -> LossAndGradient:
    """Return a function like jax.value_and_grad(loss); torch.func's grad_and_value returns the gradient first."""
    from torch.func import grad_and_value

    gradient_and_loss = grad_and_value(_torch_loss)

    def loss_and_gradient(layers: network.Layers, batch: Any) -> tuple[Any, network.Layers]:
        """Return the loss and the gradient, in this order."""
        gradient, loss = gradient_and_loss(layers, batch)
        return loss, gradient

    return loss_and_gradient


def _program(arrays: Arrays, tools: Tools, loss_and_gradient: LossAndGradient) -> Program:
    """Return a program whose step is (layers, batch) -> (layers, loss and gradients)."""
    return Program(
        state=tools.put(network.as_layers(arrays.state)),
        step=lambda layers, batch: (layers, loss_and_gradient(layers, batch)),
        batches=tools.put(arrays.batches),
        export=lambda _, found: {**network.as_state(found[1]), "loss": found[0]},
    )
