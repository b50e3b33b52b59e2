"""Observe whether a gradient of a gradient and a batch of gradients are right, as each framework composes them."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, variant

if TYPE_CHECKING:
    from numpy.random import Generator

POINTS = (2.0, -1.0, 0.0, 0.5)

Derivatives = Callable[[Any], Any]
"""Function from x (4,) to the first and the second derivative at each x, (2, 4)."""


class ComposedTransforms(Workload):
    """Differentiate f(x) = x^2 + 3x once and twice at 2, -1, 0 and 0.5: f' is 2x + 3, f'' is 2.

    Row 42 of the claims: jit(vmap(grad(f))) and jit(grad(grad(f))) are "just function composition", while in PyTorch
    "combining gradients, batching, and compilation requires careful setup". Here torch.func composes the same
    functions, also under torch.compile, which must compile them as one graph. Compilers replace the derivatives of a
    polynomial by constants, so nothing is timed: `per-example-gradients` and `hessian` time such compositions.
    """

    name = "composed-transforms"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager",)}
    observes = {
        "first": "First derivatives at 2, -1, 0 and 0.5; right are 7, 1, 3, 4.",
        "second": "Second derivatives at these points; right are 2, 2, 2, 2.",
    }

    def measure(self, parameters: Any) -> Measure:
        """Use the protocol `observe`, which records what the call returns and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call", differentiates=True)

    def arrays(self, parameters: Any, rng: "Generator") -> Arrays:
        """Return the points, which are exact in every precision."""
        del parameters, rng
        import numpy as np

        return Arrays(state={}, batches=({"x": np.array(POINTS)},))

    def jax(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Compose jax.grad and jax.vmap."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(arrays, tools, partial(_compose, jax.grad, jax.vmap, jnp.stack))

    def pytorch(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Compose torch.func.grad and torch.func.vmap."""
        del parameters
        import torch

        return _program(arrays, tools, partial(_compose, torch.func.grad, torch.func.vmap, torch.stack))

    @variant("pytorch/compile")
    def compile(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Compose torch.func.grad and torch.func.vmap, compiled as one graph; a graph break is an error."""
        del parameters
        import torch

        derivatives = partial(_compose, torch.func.grad, torch.func.vmap, torch.stack)
        return _program(arrays, tools, torch.compile(derivatives, fullgraph=True), placed=True)

    @variant("pytorch/create-graph")
    def create_graph(self, parameters: Any, arrays: Arrays, tools: Tools) -> Program:
        """Differentiate the sum over the points by torch.autograd.grad, first with create_graph=True, then again."""
        del parameters
        import torch

        def derivatives(x: Any) -> Any:
            """Differentiate the sum: each of its terms depends on one x, so this gives the derivative at each x."""
            x = x.detach().requires_grad_()
            (first,) = torch.autograd.grad(_polynomial(x).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x)
            return torch.stack([first.detach(), second])

        return _program(arrays, tools, derivatives, placed=True)


def _polynomial(x: Any) -> Any:
    """Return x^2 + 3 x, in any framework."""
    return x**2 + 3 * x


def _compose(grad: Any, vmap: Any, stack: Any, x: Any) -> Any:
    """Return both derivatives at each x by a framework's `grad` and `vmap`."""
    return stack([vmap(grad(_polynomial))(x), vmap(grad(grad(_polynomial)))(x)])


def _program(arrays: Arrays, tools: Tools, derivatives: Derivatives, *, placed: bool = False) -> Program:
    """Return a program that calls `derivatives` with the points; set `placed` if it is not to be compiled again."""
    return Program(
        state=(),
        step=lambda state, batch: (state, derivatives(batch["x"])),
        batches=tools.put(arrays.batches),
        placed=placed,
        observe=_observe,
    )


def _observe(outs: Sequence[Any]) -> dict[str, Any]:
    """Return the derivatives from the only call; a list of None for each if the call failed."""
    first, second = ([None], [None]) if outs[0] is None else outs[0]
    return {"first": first, "second": second}
