"""A quadratic polynomial of a number or a few: arithmetic so small that calling it is what takes the time."""

from dataclasses import replace
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

if TYPE_CHECKING:
    from numpy.random import Generator

LOWEST, HIGHEST = -2.2, -1.8
"""Where x starts."""


class DispatchOverhead(Workload):
    """x <- x^2 + 3x on a scalar, or on each of `size` numbers; one evaluation is one call.

    Rows 6 and 7 of the claims: compiled calls are "orders of magnitude faster", but "for tiny calculations, jit can be
    slower". JAX without jit compiles each operation when it first comes up: in a process that has used these
    operations before, on these shapes, it has nothing left to compile (`jax/op-by-op-warm`). The article evaluates the
    polynomial at 1000, once. Here each evaluation takes what the one before returned, and from 1000 that overflows
    float32 at the fourth. Between -3 and 0 it stays for ever: x = z - 3/2 makes it z <- z^2 - 3/4, which maps
    [-3/2, 3/2] into itself. x starts around -2, which the polynomial maps to itself with a slope of -1: numbers
    alternate about it and close in ever more slowly, none comes near 0 or becomes denormal, and an error of one ulp
    neither grows nor dies out, so that the reference means something after any number of steps.
    """

    name = "dispatch-overhead"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """How much one call computes."""

        size: int = Field(default=1, ge=1, le=2**28, description="Numbers in x; 1: a scalar, without an axis.")

    def measure(self, parameters: Parameters) -> Measure:
        """Ten evaluations are enough to see that each takes what the one before returned."""
        del parameters
        return Measure(unit="evaluation", parity_units=10)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """The numbers of x, shape (size,) or () for a scalar: uniform around -2."""
        shape = () if parameters.size == 1 else (parameters.size,)
        return Arrays(state={"x": rng.uniform(LOWEST, HIGHEST, shape)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy."""
        del parameters
        x = arrays.state["x"]
        for _ in range(units):
            x = _polynomial(x)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Two products and a sum for each number; fused, x is read once and written once."""
        return Cost(flops=3.0 * parameters.size, bytes=2.0 * parameters.size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Operators are the same in both frameworks."""
        del parameters
        return _program(arrays, tools)

    @variant("jax/op-by-op-warm")
    def op_by_op_warm(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Without jit, in a process that has compiled these operations before."""
        program = self.jax(parameters, arrays, tools)
        program.step(program.state, {})
        return replace(program, placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Operators are the same in both frameworks."""
        del parameters
        return _program(arrays, tools)


def _polynomial(x: Any) -> Any:
    return x**2 + 3 * x


def _program(arrays: Arrays, tools: Tools) -> Program:
    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, _: (_polynomial(x), None),
        export=lambda x, _: {"x": x},
    )
