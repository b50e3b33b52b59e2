"""Evaluate a quadratic polynomial of one or a few numbers, where the cost of the call dominates the arithmetic."""

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
"""Interval in which x starts."""


class DispatchOverhead(Workload):
    """Evaluate x <- x^2 + 3x on a scalar, or on each of `size` numbers; one evaluation is one call.

    Rows 6 and 7 of the claims: compiled calls are "orders of magnitude faster", but "for tiny calculations, jit can be
    slower". JAX without jit compiles each operation at its first use; `jax/op-by-op-warm` runs in a process that has
    already compiled these operations for these shapes.

    The article evaluates the polynomial at 1000, once. Here each evaluation takes the last result, and from 1000 that
    overflows float32 at the fourth call. Between -3 and 0 it stays bounded forever: x = z - 3/2 turns it into z <- z^2
    - 3/4, which maps [-3/2, 3/2] into itself. x starts around the fixed point -2, whose slope is -1: values alternate
    about it and converge ever more slowly, none comes near 0 or becomes denormal, and an error of one ulp neither grows
    nor vanishes, so the reference is meaningful after any number of steps.
    """

    name = "dispatch-overhead"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Set how much one call computes."""

        size: int = Field(default=1, ge=1, le=2**28, description="Numbers in x; 1: a scalar, without an axis.")

    def measure(self, parameters: Parameters) -> Measure:
        """Request a comparison with the reference after ten evaluations, each of the previous result."""
        del parameters
        return Measure(unit="evaluation", parity_units=10)

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x (size,) uniformly from -2.2 to -1.8; a scalar if `size` is 1."""
        shape = () if parameters.size == 1 else (parameters.size,)
        return Arrays(state={"x": rng.uniform(LOWEST, HIGHEST, shape)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Evaluate the polynomial in NumPy `units` times, each time at the previous result."""
        del parameters
        x = arrays.state["x"]
        for _ in range(units):
            x = _polynomial(x)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count two multiplications and an addition for each number; a fused kernel reads x once and writes it once."""
        return Cost(flops=3.0 * parameters.size, bytes=2.0 * parameters.size * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Evaluate the polynomial with Python's operators, which are the same in JAX and PyTorch."""
        del parameters
        return _program(arrays, tools)

    @variant("jax/op-by-op-warm")
    def op_by_op_warm(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run without jit, in a process that has compiled these operations before."""
        program = self.jax(parameters, arrays, tools)
        program.step(program.state, {})  # compiles every operation; the result is not needed
        return replace(program, placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Evaluate the polynomial with Python's operators, which are the same in JAX and PyTorch."""
        del parameters
        return _program(arrays, tools)


def _polynomial(x: Any) -> Any:
    """Return x^2 + 3 x, in any framework."""
    return x**2 + 3 * x


def _program(arrays: Arrays, tools: Tools) -> Program:
    """Return a program whose step replaces x by the polynomial at x."""
    return Program(
        state=tools.put(arrays.state["x"]),
        step=lambda x, _: (_polynomial(x), None),
        export=lambda x, _: {"x": x},
    )
