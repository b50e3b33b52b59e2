"""Observe ways to make a compiler recompile in every call, or fail, and the ways to compile once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class RetraceTraps(Workload):
    """Select the numbers of x that are above 0; x is (size,), and each call has one more of them.

    Row 24 of the claims: "if you find jit is recompiling on every call, check whether your function's output shape is
    fixed". The traps are a function that is created anew in every call, an output whose shape depends on values, and an
    input whose shape depends on values. The right outputs sum to 1, 2, 3, 4.
    """

    name = "retrace-traps"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"sums": "Sums of the returned arrays; right are 1, 2, 3, 4."}

    class Parameters(WorkloadParameters):
        """Set the shape and the number of calls."""

        size: int = Field(default=16, ge=4, le=1_000_000, description="Numbers in x.")
        calls: int = Field(default=4, ge=2, le=100, description="Number of calls.")

    def measure(self, parameters: Parameters) -> Measure:
        """Observe each call."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return ones, one more in each call, and minus ones; nothing is random."""
        del rng
        import numpy as np

        places = np.arange(parameters.size)
        return Arrays(
            state={}, batches=[{"x": np.where(places <= call, 1.0, -1.0)} for call in range(parameters.calls)]
        )

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep one function, and put zeros in place of the other numbers, so the shape is fixed."""
        del parameters
        import jax.numpy as jnp

        return _program(lambda x: jnp.where(x > 0, x, 0), arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Keep one function, and put zeros in place of the other numbers, so the shape is fixed."""
        del parameters
        import torch

        return _program(lambda x: torch.where(x > 0, x, 0), arrays, tools)

    @variant("jax/jit-fresh-lambda")
    def jit_fresh_lambda(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Create a new function in every call."""
        del parameters
        import jax
        import jax.numpy as jnp

        def fresh(x: Any) -> Any:
            return jax.jit(lambda x: jnp.where(x > 0, x, 0))(x)

        return _program(fresh, arrays, tools, placed=True)

    @variant("pytorch/compile-fresh-lambda")
    def compile_fresh_lambda(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Create a new function from the same code in every call."""
        del parameters
        import torch

        def fresh(x: Any) -> Any:
            return torch.compile(lambda x: torch.where(x > 0, x, 0))(x)

        return _program(fresh, arrays, tools, placed=True)

    @variant("jax/jit-boolean-mask")
    def jit_boolean_mask(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Return `x[x > 0]`: the output's shape depends on the values."""
        del parameters
        import jax

        return _program(jax.jit(lambda x: x[x > 0]), arrays, tools, placed=True)

    @variant("pytorch/compile-boolean-mask")
    def compile_boolean_mask(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Return `x[x > 0]`: the output's shape depends on the values."""
        del parameters
        import torch

        return _program(torch.compile(lambda x: x[x > 0]), arrays, tools, placed=True)

    @variant("jax/jit-mask-outside")
    def jit_mask_outside(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the mask outside, in NumPy: jit gets arrays of one, two, three and four numbers."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(_after_mask(jax.jit(jnp.square)), arrays, tools, placed=True)

    @variant("jax/jit-mask-outside-sum")
    def jit_mask_outside_sum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Apply the mask outside and return the sum, whose shape is fixed."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(_after_mask(jax.jit(jnp.sum)), arrays, tools, placed=True)

    @variant("jax/jit-fixed-size")
    def jit_fixed_size(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `jnp.nonzero(..., size=)`: the numbers above 0, then zeros, in a fixed shape."""
        del parameters
        import jax
        import jax.numpy as jnp

        def above_zero(x: Any) -> Any:
            (places,) = jnp.nonzero(x > 0, size=x.size, fill_value=x.size)
            return x.at[places].get(mode="fill", fill_value=0)

        return _program(jax.jit(above_zero), arrays, tools, placed=True)


def _after_mask(jitted: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Call `jitted` with the numbers above 0, selected by NumPy, whose indexing compiles nothing."""
    import numpy as np

    def masked(x: Any) -> Any:
        numbers = np.asarray(x)
        return jitted(numbers[numbers > 0])

    return masked


def _program(function: Callable[[Any], Any], arrays: Arrays, tools: Tools, *, placed: bool = False) -> Program:
    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        return state, function(batch["x"])

    return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=placed, observe=_sums)


def _sums(outs: Sequence[Any]) -> dict[str, Any]:
    return {"sums": [None if out is None else out.sum() for out in outs]}
