"""Apply a function of one row to a batch of rows: by vmap, by writing out the batch, or by a loop."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import (
    Arrays,
    Cost,
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

SECONDS = 0.01
"""Length of a particle's time step."""

Function = Callable[..., Any]
"""Function from one row of each array of the batch to one row of the result, or from all rows to all rows."""
Apply = Callable[..., Any]
"""Function from the arrays of the batch to the result: an array, or a list of its rows."""


class Vmap(Workload):
    """Move `rows` particles by their velocities, or square as many numbers, by a function of one particle or number.

    Row 38 of the claims: vmap over 10,000 particles under jit is "a fused kernel that runs as fast as hand-written
    batched CUDA". `jax/jit` is compared with the same update written for the whole batch: under jit, and in PyTorch
    eagerly and compiled. On a GPU, compilers turn that into the kernel that a person would write in CUDA. Row 39: vmap
    instead of a loop "produces a single fused kernel". With `function: square`, the article's f(x) = x**2, loops call
    f row by row: as it is, jitted, or all calls inside one jitted function. Loops return a list: stacking it would copy
    all rows.
    """

    name = "vmap"
    moves_once = True
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Set the function and the number of rows."""

        rows: int = Field(default=10_000, ge=1, le=2**28, description="Rows of the batch; loops make as many calls.")
        function: Literal["move", "square"] = Field(
            default="move", description="move: x + 0.01 v, with x and v of (2,); square: x^2, with x a number."
        )

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw positions x and velocities v, (rows, 2) each, or numbers x (rows,); a step changes none of them."""
        if parameters.function == "square":
            return Arrays(state={}, batches=({"x": rng.standard_normal(parameters.rows)},))
        x, v = rng.standard_normal((2, parameters.rows, 2))
        return Arrays(state={}, batches=({"x": x, "v": v},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Return the result of a step, which is the same in each step."""
        del units
        return {"result": _for_all_rows(parameters)(**arrays.batches[0])}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count a multiplication and, for `function: move`, an addition for each number; each array moves once."""
        rows = float(parameters.rows)
        if parameters.function == "square":
            return Cost(flops=rows, bytes=2 * rows * float_bytes)
        return Cost(flops=4 * rows, bytes=6 * rows * float_bytes)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.vmap."""
        import jax
        import jax.numpy as jnp

        return _program(arrays, tools, jax.vmap(_for_one_row(parameters, jnp.stack)))

    @variant("jax/jit-by-hand")
    def jit_by_hand(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write the function for all rows at once, under jit."""
        return placed.jitted(_program(arrays, tools, _for_all_rows(parameters)))

    @variant("jax/jit-map")
    def jit_map(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use jax.lax.map, a loop over the rows inside the compiled program, under jit."""
        import jax
        import jax.numpy as jnp

        function = _for_one_row(parameters, jnp.stack)

        def apply(*arrays: Any) -> Any:
            """Return the results of all rows, by a loop in the compiled program."""
            return jax.lax.map(lambda row: function(*row), arrays)

        return placed.jitted(_program(arrays, tools, apply))

    @variant("jax/jit-loop")
    def jit_loop(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the function for one row after another inside jit, which compiles a copy for each row."""
        import jax.numpy as jnp

        return placed.jitted(_program(arrays, tools, _in_a_loop(_for_one_row(parameters, jnp.stack)), stack=jnp.stack))

    @variant("jax/loop")
    def loop_of_jitted(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the jitted function for one row after another."""
        import jax
        import jax.numpy as jnp

        apply = _in_a_loop(jax.jit(_for_one_row(parameters, jnp.stack)))
        return placed.as_written(_program(arrays, tools, apply, stack=jnp.stack))

    @variant("jax/op-by-op-loop")
    def op_by_op_loop(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the function for one row after another, without jit."""
        import jax.numpy as jnp

        apply = _in_a_loop(_for_one_row(parameters, jnp.stack))
        return placed.as_written(_program(arrays, tools, apply, stack=jnp.stack))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write the function for all rows at once, as is usual in PyTorch."""
        return _program(arrays, tools, _for_all_rows(parameters))

    @variant("pytorch/func")
    def torch_func(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use torch.func.vmap, eagerly."""
        return placed.as_written(_program(arrays, tools, _torch_vmap(parameters)))

    @variant("pytorch/compile-func", in_mode="compile")
    def torch_compile_func(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compile torch.func.vmap as one graph."""
        return placed.compiled_as_one_graph(_program(arrays, tools, _torch_vmap(parameters)), tools)

    @variant("pytorch/loop")
    def torch_loop(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call the function for one row after another, eagerly."""
        import torch

        apply = _in_a_loop(_for_one_row(parameters, torch.stack))
        return placed.as_written(_program(arrays, tools, apply, stack=torch.stack))


def _for_one_row(parameters: Vmap.Parameters, stack: Callable[[list[Any]], Any]) -> Function:
    """Return the function of one row: `square`, or `move`, which stacks the two numbers of x as in the article."""
    if parameters.function == "square":
        return lambda x: x**2
    return lambda x, v: stack([x[0], x[1]]) + v * SECONDS


def _for_all_rows(parameters: Vmap.Parameters) -> Function:
    """Return the function as a person writes it for the whole batch, in any framework."""
    return (lambda x: x**2) if parameters.function == "square" else lambda x, v: x + v * SECONDS


def _in_a_loop(function: Function) -> Apply:
    """Return a function of whole arrays that calls `function` for one row after another and returns a list."""
    return lambda *arrays: [function(*row) for row in zip(*arrays, strict=True)]


def _torch_vmap(parameters: Vmap.Parameters) -> Apply:
    """Return the function of one row under torch.func.vmap."""
    import torch

    apply: Apply = torch.func.vmap(_for_one_row(parameters, torch.stack))
    return apply


def _program(
    arrays: Arrays,
    tools: Tools,
    apply: Apply,
    stack: Callable[[list[Any]], Any] | None = None,
) -> Program:
    """Return a program whose step applies the function to all rows of the batch.

    `stack` is needed if `apply` returns a list of rows.
    """
    names = list(arrays.batches[0])  # in the order of the function's arguments; jit sorts the names of its inputs

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        """Return the empty state, and the results of all rows."""
        return state, apply(*(batch[name] for name in names))

    return Program(
        state=(),
        step=step,
        batches=tools.put(arrays.batches),
        export=lambda _, result: {"result": stack(result) if stack else result},
    )
