"""Compute a Hessian, or its product with a vector, by the ways to combine forward and reverse differentiation."""

from collections.abc import Callable
from functools import partial
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
from accelbench.workloads import _placed as placed

if TYPE_CHECKING:
    from numpy.random import Generator

SecondDerivative = Callable[[Any, Any, Any], Any]
"""Function (x, a, v) -> the Hessian (size, size) at x or, for `of: product`, its product with v."""


class Hessian(Workload):
    """Compute the Hessian of f(x) = sum_i log cosh((A x)_i), or its product with v.

    The closed form is A' diag(1 - tanh^2(A x)) A. Row 41 of the claims: "Want the Hessian? jax.jacfwd(jax.grad(f)) ...
    PyTorch supports this via torch.autograd.grad with create_graph=True, but it's clunkier". PyTorch has more ways:
    torch.func, which is JAX's way, and torch.autograd.functional. By reverse differentiation alone, a Hessian is one
    backward pass for each of its rows.
    """

    name = "hessian"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the size, and what is computed."""

        size: int = Field(default=100, ge=1, le=10_000, description="Numbers in x; rows and columns of A.")
        of: Literal["matrix", "product"] = Field(
            default="matrix", description="matrix: the whole Hessian; product: the Hessian times v."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Declare that a step computes gradients."""
        del parameters
        return Measure(differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (size,), A (size, size), scaled so that A x is about standard normal, and v (size,)."""
        size = parameters.size
        a = rng.standard_normal((size, size)) / size**0.5
        return Arrays(state={"x": rng.standard_normal(size)}, batches=({"a": a, "v": rng.standard_normal(size)},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Use the closed form in NumPy; no step changes x, so all steps give the same result."""
        import numpy as np

        del units
        batch = arrays.batches[0]
        return {"derivative": _closed_form(parameters, np.tanh)(arrays.state["x"], batch["a"], batch["v"])}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations of the closed form; A is read once, and the result is written."""
        size = float(parameters.size)
        if parameters.of == "product":  # products of A with x and v, of A' with a vector, and the diagonal
            return Cost(flops=6 * size**2 + 4 * size, bytes=size**2 * float_bytes)
        # A' times the scaled A takes 2 n^3, A x takes 2 n^2, and the scaling n^2.
        return Cost(flops=2 * size**3 + 3 * size**2, bytes=2 * size**2 * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the gradient forward: jax.jacfwd(jax.grad(f)), or jax.jvp(jax.grad(f)) for a product."""
        import jax

        def derivative(x: Any, a: Any, v: Any) -> Any:
            """Return the Hessian or, for `of: product`, the directional derivative of the gradient along v."""
            gradient_at = jax.grad(partial(_jax_function, a))
            if parameters.of == "product":
                return jax.jvp(gradient_at, (x,), (v,))[1]
            return jax.jacfwd(gradient_at)(x)

        return _program(arrays, tools, derivative)

    @variant("jax/jit-reverse")
    def jit_reverse(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the gradient in reverse: jax.jacrev(jax.grad(f)), or jax.grad of grad(f) times v, under jit."""
        import jax

        def derivative(x: Any, a: Any, v: Any) -> Any:
            """Return the Hessian or, for `of: product`, the gradient of the gradient's product with v."""
            gradient_at = jax.grad(partial(_jax_function, a))
            if parameters.of == "product":
                return jax.grad(lambda x: gradient_at(x) @ v)(x)
            return jax.jacrev(gradient_at)(x)

        return placed.jitted(_program(arrays, tools, derivative))

    @variant("jax/jit-by-hand")
    def jit_by_hand(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the closed form, under jit."""
        import jax.numpy as jnp

        return placed.jitted(_program(arrays, tools, _closed_form(parameters, jnp.tanh)))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the gradient forward by torch.func, eagerly."""
        return _program(arrays, tools, _torch_func(parameters))

    @variant("pytorch/compile", in_mode="compile")
    def torch_compile(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the gradient forward by torch.func, compiled as one graph."""
        return placed.compiled_as_one_graph(_program(arrays, tools, _torch_func(parameters)), tools)

    @variant("pytorch/create-graph")
    def create_graph(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate by autograd with create_graph=True, then again for each row, or once for a product."""
        import torch

        def derivative(x: Any, a: Any, v: Any) -> Any:
            """Return the Hessian row by row, or the gradient of the gradient's product with v."""
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(_torch_function(a, x), x, create_graph=True)
            if parameters.of == "product":
                return torch.autograd.grad(gradient @ v, x)[0]
            return torch.stack([torch.autograd.grad(each, x, retain_graph=True)[0] for each in gradient])

        return placed.as_written(_program(arrays, tools, derivative))

    @variant("pytorch/create-graph-batched")
    def create_graph_batched(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate by autograd with create_graph=True, then for all rows at once by is_grads_batched=True."""
        import torch

        def derivative(x: Any, a: Any, v: Any) -> Any:
            """Return the Hessian from one batch of backward passes, or its product with v from one backward pass."""
            x = x.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(_torch_function(a, x), x, create_graph=True)
            if parameters.of == "product":
                return torch.autograd.grad(gradient, x, v)[0]
            identity = torch.eye(len(x), dtype=x.dtype, device=x.device)
            return torch.autograd.grad(gradient, x, identity, is_grads_batched=True)[0]

        return placed.as_written(_program(arrays, tools, derivative))

    @variant("pytorch/functional")
    def functional(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.autograd.functional.hessian, or for a product its vhp, eagerly.

        PyTorch's documentation advises vhp in place of hvp, which is much slower: a Hessian is symmetric.
        """
        from torch.autograd import functional

        def derivative(x: Any, a: Any, v: Any) -> Any:
            function = partial(_torch_function, a)
            return functional.vhp(function, x, v)[1] if parameters.of == "product" else functional.hessian(function, x)

        return placed.as_written(_program(arrays, tools, derivative))

    @variant("pytorch/by-hand")
    def torch_by_hand(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute the closed form, eagerly."""
        import torch

        return placed.as_written(_program(arrays, tools, _closed_form(parameters, torch.tanh)))


def _jax_function(a: Any, x: Any) -> Any:
    """Return f(x) in JAX."""
    import jax.numpy as jnp

    return jnp.log(jnp.cosh(a @ x)).sum()


def _torch_function(a: Any, x: Any) -> Any:
    """Return f(x) in PyTorch."""
    import torch

    return torch.log(torch.cosh(a @ x)).sum()


def _torch_func(parameters: Hessian.Parameters) -> SecondDerivative:
    """Return the counterpart in torch.func of jax.jacfwd(jax.grad(f)), or of jax.jvp(jax.grad(f)) for a product."""
    from torch import func

    def derivative(x: Any, a: Any, v: Any) -> Any:
        """Return the Hessian or, for `of: product`, the directional derivative of the gradient along v."""
        gradient_at = func.grad(partial(_torch_function, a))
        return func.jvp(gradient_at, (x,), (v,))[1] if parameters.of == "product" else func.jacfwd(gradient_at)(x)

    return derivative


def _closed_form(parameters: Hessian.Parameters, tanh: Callable[[Any], Any]) -> SecondDerivative:
    """Return a function for the closed form, in any framework; a product is computed from right to left."""

    def derivative(x: Any, a: Any, v: Any) -> Any:
        """Return the Hessian in closed form, or its product with v."""
        curvatures = 1 - tanh(a @ x) ** 2  # second derivatives of log cosh: the diagonal of the closed form
        return a.T @ (curvatures * (a @ v)) if parameters.of == "product" else a.T @ (curvatures[:, None] * a)

    return derivative


def _program(arrays: Arrays, tools: Tools, derivative: SecondDerivative) -> Program:
    """Return a program whose step is (x, batch) -> (x, second derivative at x)."""

    def step(x: Any, batch: Any) -> tuple[Any, Any]:
        return x, derivative(x, batch["a"], batch["v"])

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=tools.put(arrays.batches),
        export=lambda _, derivative: {"derivative": derivative},
    )
