"""Measure elementwise arithmetic on a vector: the gain of fusing operations into one pass over memory."""

from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import Arrays, Cost, Measure, NamedArrays, Program, Tools, Workload, WorkloadParameters

if TYPE_CHECKING:
    from numpy.random import Generator


class ElementwiseFusion(Workload):
    """Compute x <- sin(x) + cos(x), or x <- cos(sin(x)) + 1, on a vector of `size` elements.

    Rows 8 to 10 of the claims: unfused, "three passes over the data". A call is one evaluation, never several, because
    a compiler would fuse those too. Each evaluation takes the result of the last.
    """

    name = "elementwise-fusion"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile"), "numpy": ("eager",)}

    class Parameters(WorkloadParameters):
        """Set the length of the vector and the expression."""

        size: int = Field(default=2**20, ge=1, le=2**30, description="Elements of the vector.")
        form: Literal["sum", "chain"] = Field(
            default="sum", description="sum: sin(x) + cos(x); chain: cos(sin(x)) + 1."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Declare one evaluation of the whole vector as the unit of work."""
        del parameters
        return Measure(unit="evaluation")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw a standard normal x of shape (size,)."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Evaluate the expression in NumPy `units` times, each time at the previous result."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            x = _evaluate(parameters.form, np, x)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count three operations for each element, a sine as one; a fused kernel reads x once and writes it once."""
        return Cost(flops=3.0 * parameters.size, bytes=2.0 * parameters.size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Evaluate the expression with jax.numpy."""
        import jax.numpy as jnp

        return _program(parameters.form, jnp, arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Evaluate the expression with PyTorch."""
        import torch

        return _program(parameters.form, torch, arrays, tools)

    def numpy(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Evaluate the expression with NumPy."""
        import numpy as np

        return _program(parameters.form, np, arrays, tools)


def _evaluate(form: str, library: Any, x: Any) -> Any:
    """Return sin(x) + cos(x) if `form` is `sum`, else cos(sin(x)) + 1; `library` is NumPy, jax.numpy or torch."""
    if form == "sum":
        return library.sin(x) + library.cos(x)
    return library.cos(library.sin(x)) + 1


def _program(form: str, library: Any, arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step replaces x by `_evaluate(form, library, x)`."""
    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, _: (_evaluate(form, library, x), None),
        export=lambda x, _: {"x": x},
    )
