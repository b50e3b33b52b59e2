"""x = x + 1: whether the new x takes memory beside the old one."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class InplaceUpdate(Workload):
    """x <- x + 1 for x of (size,).

    Row 13 of the claims: JAX's arrays are immutable, but "if you're in a jitted function, XLA's optimizer often
    eliminates the copy", which `x += 1` does not make in the first place. A result lies in memory of its own unless the
    caller gives the old array away (donation); peak memory tells.
    """

    name = "inplace-update"
    moves_once = True
    modes = {"pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Shape of x."""

        size: int = Field(default=2**24, ge=1, le=2**31, description="Numbers in x.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """X standard normal."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """1 for each step."""
        del parameters
        return {"x": arrays.state["x"] + units}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """An addition a number, which is read and written."""
        return Cost(flops=float(parameters.size), bytes=2.0 * parameters.size * float_bytes)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array, under jit."""
        import jax

        del parameters
        return _jax_program(arrays, tools, jax.jit(_add))

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array."""
        del parameters
        return _jax_program(arrays, tools, _add)

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The old array is given away, and the new one takes its place."""
        import jax

        del parameters
        return _jax_program(arrays, tools, jax.jit(_add, donate_argnums=0))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X = x + 1: a new tensor."""
        del parameters
        return _program(arrays, tools, _add)

    @variant("pytorch/in-place")
    def in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X += 1, eager."""

        def step(x: Any, _: Any) -> tuple[Any, None]:
            x += 1
            return x, None

        del parameters
        return replace(_program(arrays, tools, step), placed=True)


def _add(x: Any, _: Any) -> tuple[Any, None]:
    return x + 1, None


def _jax_program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Every block begins with a copy that nobody else holds, as PyTorch's does: else what is kept apart is hidden."""
    return replace(_program(arrays, tools, step), placed=True, donate=True)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})
