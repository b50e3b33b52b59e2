"""Observe with respect to which argument a gradient is computed: the weights or, to attack the network, the data."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Array, Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant
from accelbench.workloads import _placed as placed

if TYPE_CHECKING:
    from numpy.random import Generator

TOLERANCE = 1e-3
"""Maximum error of a right gradient, as a share of its largest number."""

Gradient = Callable[[Any, Any, Any], Any]
"""Function (w, x, y) -> a gradient of the loss."""


class AdversarialGradient(Workload):
    """Differentiate a network's loss with respect to its inputs; an attack adds the gradient's signs to the inputs.

    Row 44 of the claims: "Want gradients w.r.t. data for adversarial examples? Pass argnums=1. Forget that and you'll
    get a cryptic error about 'differentiated w.r.t. a non-differentiable argument.'" If the weights are the first
    argument, forgetting it is no error: the result is the gradient with respect to the weights. JAX raises an error if
    the first argument has integers, such as labels. PyTorch differentiates with respect to tensors that require a
    gradient, and raises an error if none does. The loss is the mean square of tanh(x w) - y, with labels y of -1, 0 and
    1.
    """

    name = "adversarial-gradient"
    modes = {"jax": ("jit",), "pytorch": ("eager",)}
    observes = {"gradientOf": "For each call: what is the loss differentiated by, data or weights?"}

    class Parameters(WorkloadParameters):
        """Set the sizes."""

        examples: int = Field(default=32, ge=1, le=4096, description="Examples in a batch.")
        inputs: int = Field(default=16, ge=1, le=4096, description="Numbers in an example.")
        calls: int = Field(default=2, ge=1, le=100, description="Number of calls; each has examples of its own.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call", differentiates=True)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw weights w (inputs, 1) and, for each call, x (examples, inputs) and labels y (examples, 1)."""
        batches = [
            {
                "x": rng.standard_normal((parameters.examples, parameters.inputs)),
                "y": rng.integers(-1, 2, (parameters.examples, 1)),
            }
            for _ in range(parameters.calls)
        ]
        return Arrays(state={"w": rng.standard_normal((parameters.inputs, 1))}, batches=batches)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.grad(loss, argnums=1) of loss(w, x, y)."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(arrays, tools, jax.grad(partial(_loss, jnp.tanh), argnums=1))

    @variant("jax/jit-forgotten")
    def jit_forgotten(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.grad(loss) of loss(w, x, y), without argnums, under jit."""
        del parameters
        import jax
        import jax.numpy as jnp

        return placed.jitted(_program(arrays, tools, jax.grad(partial(_loss, jnp.tanh))))

    @variant("jax/jit-labels-first")
    def jit_labels_first(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.grad(loss) of loss(y, w, x), whose first argument has integers, under jit."""
        del parameters
        import jax
        import jax.numpy as jnp

        gradient = jax.grad(lambda y, w, x: _loss(jnp.tanh, w, x, y))
        return placed.jitted(_program(arrays, tools, lambda w, x, y: gradient(y, w, x)))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call requires_grad_() on the data, and use torch.autograd.grad."""
        del parameters
        return _program(arrays, tools, lambda w, x, y: _by_autograd(w, x.detach().requires_grad_(), y))

    @variant("pytorch/forgotten")
    def forgotten(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.autograd.grad with respect to data that do not require a gradient, which is an error."""
        del parameters
        return placed.as_written(_program(arrays, tools, _by_autograd))

    @variant("pytorch/func")
    def func(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.func.grad(loss, argnums=1) of loss(w, x, y)."""
        del parameters
        import torch

        return placed.as_written(_program(arrays, tools, torch.func.grad(partial(_loss, torch.tanh), argnums=1)))

    @variant("pytorch/func-forgotten")
    def func_forgotten(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.func.grad(loss) of loss(w, x, y), without argnums."""
        del parameters
        import torch

        return placed.as_written(_program(arrays, tools, torch.func.grad(partial(_loss, torch.tanh))))


def _loss(tanh: Callable[[Any], Any], w: Any, x: Any, y: Any) -> Any:
    """Return the mean square of tanh(x w) - y, in any framework."""
    return ((tanh(x @ w) - y) ** 2).mean()


def _by_autograd(w: Any, x: Any, y: Any) -> Any:
    """Return the gradient with respect to x; raise RuntimeError if x does not require a gradient."""
    import torch

    return torch.autograd.grad(_loss(torch.tanh, w, x, y), x)[0]


def gradients_by_hand(w: Array, x: Array, y: Array) -> dict[str, Array]:
    """Return the gradients of the loss with respect to the data and to the weights, in NumPy."""
    import numpy as np

    outputs = np.tanh(x @ w)
    d_products = 2 * (outputs - y) * (1 - outputs**2) / y.size
    return {"data": d_products @ w.T, "weights": x.T @ d_products}


def _program(arrays: Arrays, tools: Tools, gradient: Gradient) -> Program:
    """Return a program that calls `gradient` with the weights and each batch."""

    def observe(outs: Sequence[Any]) -> dict[str, Any]:
        """Name the gradient that each call returned, `data` or `weights`; None for a call that failed."""
        right = [gradients_by_hand(arrays.state["w"], **batch) for batch in arrays.batches]
        return {"gradientOf": [None if out is None else _name(out, by) for out, by in zip(outs, right, strict=True)]}

    return Program(
        state=tools.put(arrays.state["w"]),
        step=lambda w, batch: (w, gradient(w, batch["x"], batch["y"])),
        batches=tools.put(arrays.batches),
        observe=observe,
    )


def _name(found: Array, gradients: Mapping[str, Array]) -> str:
    """Return the name of the gradient that equals `found` within the tolerance; `neither` if none does."""
    for name, gradient in gradients.items():
        if found.shape == gradient.shape and abs(found - gradient).max() <= TOLERANCE * abs(gradient).max():
            return name
    return "neither"
