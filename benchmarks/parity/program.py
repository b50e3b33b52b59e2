"""Describe the programs of the corpus: a computation in NumPy, JAX and PyTorch, and wrong versions of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import torch

from accelbench.api.case import Precision
from accelbench.workload import Array, NamedArrays

Draw = Callable[[np.random.Generator], Array]
"""Function that draws an input."""
Function = Callable[..., Any]
"""Function of a program's inputs, in their order, that returns one array of its framework."""
Form = Literal["jax", "torch"]
FORMS: tuple[Form, ...] = ("jax", "torch")
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16")
FLOAT32: tuple[Precision, ...] = ("float32",)
WITHOUT_FLOAT16: tuple[Precision, ...] = ("float32", "bfloat16")
JAX_TYPES = {"float64": jnp.float64, "float32": jnp.float32, "bfloat16": jnp.bfloat16, "float16": jnp.float16}
TORCH_TYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
}
_compiled: dict[tuple[Function, Precision], Any] = {}
"""Jitted functions, so that each is compiled once for a precision."""


@dataclass(frozen=True)
class Fault:
    """Hold a wrong version of a program, written in JAX.

    Attributes:
        name: What is wrong.
        reach: Which outputs are wrong: `one`, `few` (less than half) or `all`.
        run: The wrong program.
    """

    name: str
    reach: Literal["one", "few", "all"]
    run: Function


@dataclass(frozen=True)
class Program:
    """Hold one computation, written once for each framework.

    Attributes:
        name: Name of the computation.
        inputs: How each input is drawn, by name, in the order of the functions' parameters.
        reference: The computation in NumPy, as a workload's `reference()` has it.
        jax: The same in JAX; it is jitted.
        torch: The same in PyTorch; it runs eagerly.
        faults: Wrong versions.
        precisions: Types in which both frameworks can compute it, and whose range is large enough.
        less_exact: True if JAX and PyTorch use an algorithm that is known to round more than the reference's.
    """

    name: str
    inputs: Mapping[str, Draw]
    reference: Function
    jax: Function
    torch: Function
    faults: tuple[Fault, ...] = ()
    precisions: tuple[Precision, ...] = PRECISIONS
    less_exact: bool = False

    def draw(self, seed: int) -> dict[str, Array]:
        """Return the inputs of this seed, in float64 or as integers."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        return {name: draw(rng) for name, draw in self.inputs.items()}


def normal(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Draw:
    """Return a function that draws normal numbers."""
    return lambda rng: rng.normal(mean, scale, shape)


def uniform(low: float, high: float, *shape: int) -> Draw:
    """Return a function that draws uniform numbers."""
    return lambda rng: rng.uniform(low, high, shape)


def integers(below: int, *shape: int) -> Draw:
    """Return a function that draws integers from 0."""
    return lambda rng: rng.integers(0, below, shape)


def run_jax(function: Function, inputs: NamedArrays, precision: Precision) -> Array:
    """Return the output of a JAX program, jitted, with its inputs in the policy's type."""
    with jax.enable_x64(precision == "float64"):
        compiled = _compiled.setdefault((function, precision), jax.jit(function))
        output = compiled(*jax_inputs(inputs, precision))
        if jnp.issubdtype(output.dtype, jnp.floating):
            return np.asarray(output).astype(np.float64)
        return np.asarray(output)


def jax_inputs(inputs: NamedArrays, precision: Precision) -> list[Any]:
    """Return the inputs as JAX arrays, with floats in the policy's type."""
    return [jnp.asarray(array, JAX_TYPES[precision] if array.dtype.kind == "f" else None) for array in inputs.values()]


def run_torch(function: Function, inputs: NamedArrays, precision: Precision) -> Array:
    """Return the output of a PyTorch program, eager, with its inputs in the policy's type."""
    tensors = [
        torch.tensor(array, dtype=TORCH_TYPES[precision] if array.dtype.kind == "f" else torch.int64)
        for array in inputs.values()
    ]
    output = function(*tensors).detach()
    array: Array = (output.double() if output.is_floating_point() else output).numpy()
    return array


def run_form(program: Program, form: Form, inputs: NamedArrays, precision: Precision) -> Array:
    """Return the output of a program in one of its frameworks."""
    if form == "jax":
        return run_jax(program.jax, inputs, precision)
    return run_torch(program.torch, inputs, precision)
