"""x = x + 1, several times: whether each new x takes memory beside the old one."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

ROW = 256
"""Numbers in a row, where rows are updated."""
LOWEST, HIGHEST = 1.5, 2.0
"""Factors of a sine: its iterates come near to one of two numbers, and never to 0."""

Update = Callable[[Any, Any, Any], Any]
"""(x, batch, number of the update) -> the next x."""


class InplaceUpdate(Workload):
    """x <- x + 1 for x of (size,), or another update of it, `updates` times in a step.

    Rows 13 and 14 of the claims: JAX's arrays are immutable, but "if you're in a jitted function, XLA's optimizer often
    eliminates the copy", which `x += 1` does not make in the first place. Between updates in one function a compiler
    may do without; a function's result lies in memory of its own unless the caller gives the old array away (donation).
    Of additions of 1 XLA makes one addition, so that nothing is left to eliminate. Of sines it cannot, but may compute
    all updates of a number one after the other. A row that is multiplied by a matrix leaves all others as they are:
    immutable, each update is a copy of everything.
    """

    name = "inplace-update"
    moves_once = True
    modes = {"pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Shape of x, what an update is, and how many there are."""

        size: int = Field(default=2**24, ge=1, le=2**31, description="Numbers in x.")
        updates: int = Field(default=1, ge=1, le=1000, description="In a step.")
        update: Literal["one", "sine", "row"] = Field(
            default="one",
            description="one: x + 1; sine: sin(x) * y; row: one row of 256 numbers, the next in each update, is "
            "multiplied by an orthogonal matrix.",
        )

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """X standard normal, (size,) or (size / 256, 256); for sines y (size,), for rows w (256, 256)."""
        import numpy as np

        x = rng.standard_normal(parameters.size)
        if parameters.update == "one":
            return Arrays(state={"x": x})
        if parameters.update == "sine":
            return Arrays(state={"x": x}, batches=({"y": rng.uniform(LOWEST, HIGHEST, parameters.size)},))
        if parameters.size % ROW or parameters.size < ROW * parameters.updates:
            raise ValueError(f"size must be a multiple of {ROW}, with a row for each update")
        w, _ = np.linalg.qr(rng.standard_normal((ROW, ROW)))
        return Arrays(state={"x": x.reshape(-1, ROW)}, batches=({"w": w},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """The same in NumPy."""
        import numpy as np

        if parameters.update == "one":
            return {"x": arrays.state["x"] + units * parameters.updates}
        x, update = arrays.state["x"], _update(parameters, np.sin, _with_row(np.copy))
        for _ in range(units):
            for number in range(parameters.updates):
                x = update(x, arrays.batches[0], number)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """A number is read and written once; of its additions a compiler may make one, as a fused step does."""
        size, updates = float(parameters.size), parameters.updates
        if parameters.update == "row":
            return Cost(flops=2.0 * updates * ROW**2, bytes=float((2 * updates + ROW) * ROW * float_bytes))
        if parameters.update == "sine":
            return Cost(flops=2.0 * updates * size, bytes=3.0 * size * float_bytes)
        return Cost(flops=size, bytes=2.0 * size * float_bytes)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array, under jit."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_jax_step(parameters)))

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """A new array."""
        return _jax_program(arrays, tools, _jax_step(parameters))

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The old array is given away, and the new one takes its place."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_jax_step(parameters), donate_argnums=0))

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """The updates as a lax.fori_loop, under jit: a loop of the program's own, its body compiled once."""
        import jax

        update = _jax_update(parameters)

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            return jax.lax.fori_loop(0, parameters.updates, lambda number, x: update(x, batch, number), x), None

        return _jax_program(arrays, tools, jax.jit(step))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X = x + 1: a new tensor."""
        import torch

        return _program(arrays, tools, _step(parameters, _update(parameters, torch.sin, _with_row(torch.clone))))

    @variant("pytorch/in-place")
    def in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X += 1, eager."""
        return replace(_program(arrays, tools, _step(parameters, _in_place(parameters))), placed=True)

    @variant("pytorch/compile-in-place")
    def torch_compile_in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """X += 1 under torch.compile, which writes into what it is given."""
        import torch

        step = torch.compile(_step(parameters, _in_place(parameters)), fullgraph=True)
        return replace(_program(arrays, tools, step), placed=True)


def _update(
    parameters: InplaceUpdate.Parameters, sine: Callable[[Any], Any], with_row: Callable[[Any, Any, Any], Any]
) -> Update:
    """None of them changes the x that it is given."""
    if parameters.update == "one":
        return lambda x, _batch, _number: x + 1
    if parameters.update == "sine":
        return lambda x, batch, _number: sine(x) * batch["y"]
    return lambda x, batch, number: with_row(x, number, x[number] @ batch["w"])


def _with_row(copy: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """In NumPy and PyTorch, each with its own way to copy."""

    def with_row(x: Any, number: int, row: Any) -> Any:
        new = copy(x)
        new[number] = row
        return new

    return with_row


def _in_place(parameters: InplaceUpdate.Parameters) -> Update:
    """In PyTorch: it changes the x that it is given."""

    def update(x: Any, batch: Any, number: int) -> Any:
        if parameters.update == "one":
            x += 1
        elif parameters.update == "sine":
            x.sin_().mul_(batch["y"])
        else:
            x[number] = x[number] @ batch["w"]
        return x

    return update


def _jax_update(parameters: InplaceUpdate.Parameters) -> Update:
    import jax.numpy as jnp

    return _update(parameters, jnp.sin, lambda x, number, row: x.at[number].set(row))


def _jax_step(parameters: InplaceUpdate.Parameters) -> Callable[[Any, Any], tuple[Any, None]]:
    return _step(parameters, _jax_update(parameters))


def _step(parameters: InplaceUpdate.Parameters, update: Update) -> Callable[[Any, Any], tuple[Any, None]]:
    def step(x: Any, batch: Any) -> tuple[Any, None]:
        for number in range(parameters.updates):
            x = update(x, batch, number)
        return x, None

    return step


def _jax_program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Every block begins with a copy that nobody else holds, as PyTorch's does: else what is kept apart is hidden."""
    return replace(_program(arrays, tools, step), placed=True, donate=True)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=tools.put(arrays.batches),
        export=lambda x, _: {"x": x},
    )
