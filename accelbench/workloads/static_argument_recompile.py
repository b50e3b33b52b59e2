"""Observe a slice whose length is an argument: is a program compiled for each length?"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class StaticArgumentRecompile(Workload):
    """Return x[:size] of x (100 k,) for size = 10, 20, ... 10 k, and then for all of them again.

    Row 18 of the claims: with `static_argnums` jit "compiles again for size=20"; known lengths compile nothing.
    """

    name = "static-argument-recompile"
    modes = {"pytorch": ("eager", "compile")}
    observes = {"lengths": "Lengths of the returned arrays."}

    class Parameters(WorkloadParameters):
        """Set the number of lengths."""

        values: int = Field(default=4, ge=1, le=50, description="k, the distinct lengths; each is used twice.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a random x, and a length for each call: 10, 20, ... 10 * `values`, then the same again."""
        import numpy as np

        lengths = [10 * (1 + call % parameters.values) for call in range(2 * parameters.values)]
        return Arrays(
            state={"x": rng.standard_normal(100 * parameters.values)},
            batches=[{"size": np.array(length)} for length in lengths],
        )

    @variant("jax/jit-static")
    def jit_static(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Make the length a static argument, so that jit compiles a program for each length."""
        del parameters
        import jax

        return _program(jax.jit(_slice, static_argnums=(1,)), arrays, tools, placed=True)

    @variant("jax/jit")
    def jit(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Trace the length like any other argument, which fails, because a slice needs a fixed length."""
        del parameters
        import jax

        return _program(jax.jit(_slice), arrays, tools, placed=True)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Slice as usual; under torch.compile, the second length compiles a program for any length."""
        del parameters
        return _program(_slice, arrays, tools)


def _slice(x: Any, size: int) -> Any:
    """Return the first `size` numbers of x."""
    return x[:size]


def _program(function: Callable[[Any, int], Any], arrays: Arrays, tools: Tools, *, placed: bool = False) -> Program:
    """Return a program that calls `function` with x and, in each call, the next length.

    Set `placed` if `function` is already compiled, or compiles by itself: the step is then called unchanged.
    """

    def step(x: Any, size: int) -> tuple[Any, Any]:
        return x, function(x, size)

    return Program(
        state=tools.put(arrays.state["x"]),
        step=step,
        batches=[int(batch["size"]) for batch in arrays.batches],
        placed=placed,
        observe=_observe_lengths,
    )


def _observe_lengths(outs: Sequence[Any]) -> dict[str, Any]:
    """Return the length of each call's array; None for a call that failed."""
    return {"lengths": [None if out is None else len(out) for out in outs]}
