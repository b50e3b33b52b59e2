"""Arithmetic on every element of a vector: what fusing operations into one pass over memory is worth."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import Arrays, Cost, Measure, NamedArrays, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator


class ElementwiseFusion(Workload):
    """x <- sin(x) + cos(x), or x <- cos(sin(x)) + 1, on a vector of `size` elements.

    Rows 8 to 10 of the claims: unfused, "three passes over the data". A call is one evaluation, never several: a
    compiler would fuse those too. Each evaluation works on the result of the one before.
    """

    name = "elementwise-fusion"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile"), "numpy": ("eager",)}

    class Parameters(WorkloadParameters):
        """Length of the vector and what is computed."""

        size: int = Field(default=2**20, ge=1, le=2**30, description="Elements of the vector.")
        form: Literal["sum", "chain"] = Field(
            default="sum", description="sum: sin(x) + cos(x); chain: cos(sin(x)) + 1."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """One evaluation of the whole vector at a time."""
        del parameters
        return Measure(unit="evaluation")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Standard normal x of shape (size,)."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            x = _evaluate(parameters.form, np, x)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Three operations an element, a sine counted as one; fused, x is read once and written once."""
        return Cost(flops=3.0 * parameters.size, bytes=2.0 * parameters.size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """In jax.numpy."""
        import jax.numpy as jnp

        return _program(parameters.form, jnp, arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """In torch."""
        import torch

        return _program(parameters.form, torch, arrays, tools)

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """In NumPy."""
        import numpy as np

        return _program(parameters.form, np, arrays, tools)


def _evaluate(form: str, library: Any, x: Any) -> Any:
    if form == "sum":
        return library.sin(x) + library.cos(x)
    return library.cos(library.sin(x)) + 1


def _program(form: str, library: Any, arrays: Arrays, tools: Tools) -> Program:
    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, _: (_evaluate(form, library, x), None),
        export=lambda x, _: {"x": x},
    )
