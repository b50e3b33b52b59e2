"""Compose transformations of functions: gradients of gradients, batched gradients, gradients through a rounding."""

from typing import TYPE_CHECKING, Any, Literal

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
from accelbench.workloads import _composed as composed
from accelbench.workloads import _placed as placed

if TYPE_CHECKING:
    from numpy.random import Generator


class ComposedGradients(Workload):
    """Solve problems that articles name as reasons to compose transformations; each has a closed form.

    Row 45 of the claims: for "Fisher information matrices, or Bayesian inference with variational objectives", JAX's
    transformations "compose beautifully"; the same is said of meta-learning, straight-through estimators and batched
    Jacobians. No article states a speedup. torch.func has the same transformations; `pytorch/autograd` uses
    create_graph=True, torch.autograd.Function and loops instead. The problems are so small that most of their time is
    spent on dispatching operations.
    """

    name = "composed-gradients"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Choose the problem, and set its sizes."""

        problem: Literal["meta-learning", "fisher", "variational", "straight-through", "batched-jacobian"] = Field(
            default="meta-learning",
            description="meta-learning: gradient of the loss after a step of gradient descent (MAML); fisher: Fisher "
            "information of a logistic regression; variational: gradient of the evidence lower bound (ELBO) of a "
            "Gaussian; straight-through: gradient of a least squares with rounded weights; batched-jacobian: Jacobian "
            "of tanh(W x) for each x.",
        )
        examples: int = Field(default=64, ge=2, le=65_536, description="Rows of the data.")
        width: int = Field(default=16, ge=1, le=4096, description="Numbers in a row.")

    def measure(self, parameters: Parameters) -> Measure:
        """Declare that a step computes gradients."""
        del parameters
        return Measure(differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw the weights as state and the data as a batch, as the problem needs them; a step changes neither."""
        weights, data = composed.PROBLEMS[parameters.problem].draw(rng, parameters.examples, parameters.width)
        return Arrays(state={"weights": weights}, batches=(data,))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Use the problem's closed form in NumPy; all steps give the same result."""
        del units
        problem = composed.PROBLEMS[parameters.problem]
        return {"result": problem.closed_form(arrays.state["weights"], arrays.batches[0])}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of the closed form; weights and data are read once, and the result is written."""
        flops, moved = composed.PROBLEMS[parameters.problem].cost(parameters.examples, parameters.width)
        return Cost(flops=float(flops), bytes=float(moved * float_bytes))

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compose jax.grad, jax.vmap and jax.jacrev."""
        return _program(arrays, tools, composed.PROBLEMS[parameters.problem].compose(jax_functions()))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compose torch.func.grad, torch.func.vmap and torch.func.jacrev, eagerly."""
        return _program(arrays, tools, composed.PROBLEMS[parameters.problem].compose(torch_functions()))

    @variant("pytorch/compile", in_mode="compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compose torch.func.grad, torch.func.vmap and torch.func.jacrev, compiled as one graph."""
        return placed.compiled_as_one_graph(self.pytorch(parameters, arrays, tools), tools)

    @variant("pytorch/autograd")
    def torch_autograd(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.autograd without torch.func: create_graph=True, an autograd.Function, loops over examples."""
        by_autograd = composed.PROBLEMS[parameters.problem].by_autograd

        def solve(weights: Any, data: composed.Data) -> Any:
            """Return the solution by torch.autograd, for which weights must require gradients."""
            return by_autograd(weights.requires_grad_(), data)

        return placed.as_written(_program(arrays, tools, solve))


def jax_functions() -> composed.Functions:
    """Return JAX's functions that solutions are composed of."""
    import jax
    import jax.numpy as jnp

    return composed.Functions(
        grad=jax.grad,
        vmap=jax.vmap,
        jacrev=jax.jacrev,
        stop_gradient=jax.lax.stop_gradient,
        exp=jnp.exp,
        round=jnp.round,
        sigmoid=jax.nn.sigmoid,
        softplus=jax.nn.softplus,
        tanh=jnp.tanh,
    )


def torch_functions() -> composed.Functions:
    """Return PyTorch's functions that solutions are composed of."""
    import torch
    from torch import func

    return composed.Functions(
        grad=func.grad,
        vmap=func.vmap,
        jacrev=func.jacrev,
        stop_gradient=torch.Tensor.detach,
        exp=torch.exp,
        round=torch.round,
        sigmoid=torch.sigmoid,
        softplus=torch.nn.functional.softplus,
        tanh=torch.tanh,
    )


def _program(arrays: Arrays, tools: Tools, solve: composed.Solution) -> Program:
    """Return a program whose step is (weights, data) -> (weights, the problem's solution)."""
    return Program(
        state=tools.put(arrays.state["weights"]),
        step=lambda weights, data: (weights, solve(weights, data)),
        batches=tools.put(arrays.batches),
        export=lambda _, result: {"result": result},
    )
