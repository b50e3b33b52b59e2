"""x = x + 1, several times: whether each new x takes memory beside the old one."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class InplaceUpdate(Workload):
    """x <- x + 1 for x of (size,), `updates` times in a step.

    Row 13 of the claims: JAX's arrays are immutable, but "if you're in a jitted function, XLA's optimizer often
    eliminates the copy", which `x += 1` does not make in the first place. Between updates in one function a compiler
    may do without; a function's result lies in memory of its own unless the caller gives the old array away (donation).
    """

    name = "inplace-update"
    moves_once = True
    modes = {"pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Shape of x, and how often it is updated."""

        size: int = Field(default=2**24, ge=1, le=2**31, description="Numbers in x.")
        updates: int = Field(default=1, ge=1, le=1000, description="In a step.")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """X standard normal."""
        return Arrays(state={"x": rng.standard_normal(parameters.size)})

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """1 for each update."""
        return {"x": arrays.state["x"] + units * parameters.updates}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """A number is read and written once; of its additions a compiler may make one, as a fused step does."""
        return Cost(flops=float(parameters.size), bytes=2.0 * parameters.size * float_bytes)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array, under jit."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_adding(parameters)))

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array."""
        return _jax_program(arrays, tools, _adding(parameters))

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The old array is given away, and the new one takes its place."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_adding(parameters), donate_argnums=0))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X = x + 1: a new tensor."""
        return _program(arrays, tools, _adding(parameters))

    @variant("pytorch/in-place")
    def in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X += 1, eager."""

        def step(x: Any, _: Any) -> tuple[Any, None]:
            for _update in range(parameters.updates):
                x += 1
            return x, None

        return replace(_program(arrays, tools, step), placed=True)


def _adding(parameters: InplaceUpdate.Parameters) -> Callable[[Any, Any], tuple[Any, None]]:
    def step(x: Any, _: Any) -> tuple[Any, None]:
        for _update in range(parameters.updates):
            x = x + 1
        return x, None

    return step


def _jax_program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Every block begins with a copy that nobody else holds, as PyTorch's does: else what is kept apart is hidden."""
    return replace(_program(arrays, tools, step), placed=True, donate=True)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})
