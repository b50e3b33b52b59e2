"""Measure repeated updates x = x + 1: does each new x need memory of its own?"""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from accelbench.workload import Arrays, Cost, NamedArrays, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

ROW_LENGTH = 256
"""Numbers in a row, for updates of rows."""
LOWEST, HIGHEST = 1.5, 2.0
"""Range of the factors y: for these, repeated sin(x) * y approaches one of two numbers and never 0."""

Update = Callable[[Any, Any, Any], Any]
"""Function (x, batch, index of the update in the step) -> next x."""


class InplaceUpdate(Workload):
    """Update x <- x + 1 for x of (size,), or by another rule, `updates` times in a step.

    Rows 13 and 14 of the claims: JAX's arrays are immutable, but "if you're in a jitted function, XLA's optimizer often
    eliminates the copy", which `x += 1` never makes. Between updates inside one function a compiler may avoid copies;
    the function's result needs new memory unless the caller donates the old array. XLA folds additions of 1 into one
    addition, which leaves nothing to eliminate. It cannot fold sines, but may compute all updates of one number in
    sequence. A row that is multiplied by a matrix leaves all other rows unchanged: without jit, each such update of an
    immutable array copies everything.
    """

    name = "inplace-update"
    moves_once = True
    modes = {"pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Set the shape of x, the kind of update, and how many there are."""

        size: int = Field(default=2**24, ge=1, le=2**31, description="Numbers in x.")
        updates: int = Field(default=1, ge=1, le=1000, description="Updates in a step.")
        update: Literal["one", "sine", "row"] = Field(
            default="one",
            description="one: x + 1; sine: sin(x) * y; row: one row of 256 numbers, the next in each update, is "
            "multiplied by an orthogonal matrix.",
        )

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Draw x; for `update: sine` also y, for `row` also an orthogonal w, which keeps the scale of a row."""
        import numpy as np

        x = rng.standard_normal(parameters.size)
        if parameters.update == "one":
            return Arrays(state={"x": x})
        if parameters.update == "sine":
            return Arrays(state={"x": x}, batches=({"y": rng.uniform(LOWEST, HIGHEST, parameters.size)},))
        if parameters.size % ROW_LENGTH or parameters.size < ROW_LENGTH * parameters.updates:
            raise ValueError(f"size must be a multiple of {ROW_LENGTH}, with a row for each update")
        w, _ = np.linalg.qr(rng.standard_normal((ROW_LENGTH, ROW_LENGTH)))
        return Arrays(state={"x": x.reshape(-1, ROW_LENGTH)}, batches=({"w": w},))

    def reference(self, parameters: Parameters, arrays: Arrays, units: int) -> NamedArrays:
        """Compute all updates of `units` steps in NumPy."""
        import numpy as np

        if parameters.update == "one":
            return {"x": arrays.state["x"] + units * parameters.updates}
        x, update = arrays.state["x"], _new_array_update(parameters, sine=np.sin, set_row=_row_setter(np.copy))
        for _ in range(units):
            for index in range(parameters.updates):
                x = update(x, arrays.batches[0], index)
        return {"x": x}

    def cost(self, parameters: Parameters, float_bytes: int) -> Cost:
        """Count the operations and bytes of a step; x is read once and written once.

        For `update: one`, all additions to a number count as one, because a compiler may fold them. For `sine`, y is
        read too. For `row`, only the updated rows and w move.
        """
        size, updates = float(parameters.size), parameters.updates
        if parameters.update == "row":
            moved_rows = 2 * updates + ROW_LENGTH  # updated rows are read and written, the rows of w are read
            return Cost(flops=2.0 * updates * ROW_LENGTH**2, bytes=float(moved_rows * ROW_LENGTH * float_bytes))
        if parameters.update == "sine":
            return Cost(flops=2.0 * updates * size, bytes=3.0 * size * float_bytes)
        return Cost(flops=size, bytes=2.0 * size * float_bytes)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute each update as a new array, under jit."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_jax_step(parameters)))

    @variant("jax/op-by-op")
    def op_by_op(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute each update as a new array, without jit."""
        return _jax_program(arrays, tools, _jax_step(parameters))

    @variant("jax/jit-donated")
    def jit_donated(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Donate the old array to jit, so that the new array can take its memory."""
        import jax

        return _jax_program(arrays, tools, jax.jit(_jax_step(parameters), donate_argnums=0))

    @variant("jax/jit-fori")
    def jit_fori(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Run the updates in a lax.fori_loop under jit, which compiles the body once."""
        import jax

        update = _jax_update(parameters)

        def step(x: Any, batch: Any) -> tuple[Any, None]:
            """Return x after all updates, by a loop in the compiled program."""
            return jax.lax.fori_loop(0, parameters.updates, lambda index, x: update(x, batch, index), x), None

        return _jax_program(arrays, tools, jax.jit(step))

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Compute each update as a new tensor, as `x = x + 1` does."""
        import torch

        update = _new_array_update(parameters, sine=torch.sin, set_row=_row_setter(torch.clone))
        return _program(arrays, tools, _step(parameters, update))

    @variant("pytorch/in-place")
    def in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Change x in place in each update, as `x += 1` does, eagerly."""
        step = _step(parameters, _in_place_update(parameters))
        return replace(_program(arrays, tools, step), placed=True)

    @variant("pytorch/compile-in-place")
    def torch_compile_in_place(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Change x, the step's argument, in place in each update, as `x += 1` does, under torch.compile."""
        import torch

        step = torch.compile(_step(parameters, _in_place_update(parameters)), fullgraph=True)
        return replace(_program(arrays, tools, step), placed=True)


def _new_array_update(
    parameters: InplaceUpdate.Parameters, sine: Callable[[Any], Any], set_row: Callable[[Any, Any, Any], Any]
) -> Update:
    """Return the update that `parameters.update` names, as a function (x, batch, index) -> new array.

    x stays unchanged. `sine` and `set_row`, (x, index, row) -> new array, are the framework's functions.
    """
    if parameters.update == "one":
        return lambda x, _batch, _index: x + 1
    if parameters.update == "sine":
        return lambda x, batch, _index: sine(x) * batch["y"]
    return lambda x, batch, index: set_row(x, index, x[index] @ batch["w"])


def _row_setter(copy: Callable[[Any], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a function (x, index, row) that sets a row in a new copy of x, made by the framework's `copy`."""

    def set_row(x: Any, index: int, row: Any) -> Any:
        """Return a copy of x with a new row."""
        new = copy(x)
        new[index] = row
        return new

    return set_row


def _in_place_update(parameters: InplaceUpdate.Parameters) -> Update:
    """Return an update for PyTorch, (x, batch, index) -> x, that changes x in place."""

    def update(x: Any, batch: Any, index: int) -> Any:
        """Change x in place, and return x."""
        if parameters.update == "one":
            x += 1
        elif parameters.update == "sine":
            x.sin_().mul_(batch["y"])
        else:
            x[index] = x[index] @ batch["w"]
        return x

    return update


def _jax_update(parameters: InplaceUpdate.Parameters) -> Update:
    """Return an update for JAX, (x, batch, index) -> new array."""
    import jax.numpy as jnp

    return _new_array_update(parameters, sine=jnp.sin, set_row=lambda x, index, row: x.at[index].set(row))


def _jax_step(parameters: InplaceUpdate.Parameters) -> Callable[[Any, Any], tuple[Any, None]]:
    """Return a step for JAX that applies all updates in a Python loop."""
    return _step(parameters, _jax_update(parameters))


def _step(parameters: InplaceUpdate.Parameters, update: Update) -> Callable[[Any, Any], tuple[Any, None]]:
    """Return a step that applies `update` for the indices 0 to `parameters.updates` - 1."""

    def step(x: Any, batch: Any) -> tuple[Any, None]:
        """Return x after all updates."""
        for index in range(parameters.updates):
            x = update(x, batch, index)
        return x, None

    return step


def _jax_program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Return a program for JAX that calls `step` unchanged: the variant has compiled it, or does without jit.

    The step may reuse the memory of x; because of `donate`, every measured block begins with a fresh copy of x.
    """
    return replace(_program(arrays, tools, step), placed=True, donate=True)


def _program(arrays: Arrays, tools: Tools, step: Any) -> Program:
    """Return a program whose state is x, and whose step is (x, batch) -> (x, None)."""
    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=tools.put(arrays.batches),
        export=lambda x, _: {"x": x},
    )
