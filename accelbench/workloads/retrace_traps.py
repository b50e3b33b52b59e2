"""Observe ways to make a compiler recompile in every call, or fail, and the ways to compile once."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class RetraceTraps(Workload):
    """Select the numbers of x that are above 0; x is (size,), and in each call one more number is above 0.

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
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a batch for each call: in call i, i + 1 numbers are positive."""
        del rng
        import numpy as np

        indices = np.arange(parameters.size)
        batches = [{"x": np.where(indices <= call, 1.0, -1.0)} for call in range(parameters.calls)]
        return Arrays(state={}, batches=batches)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Replace all numbers but the positive ones by zeros, which keeps the shape."""
        del parameters
        import jax.numpy as jnp

        return _program(lambda x: jnp.where(x > 0, x, 0), arrays, tools)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Replace all numbers but the positive ones by zeros, which keeps the shape."""
        del parameters
        import torch

        return _program(lambda x: torch.where(x > 0, x, 0), arrays, tools)

    @variant("jax/jit-fresh-lambda")
    def jit_fresh_lambda(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pass a new function to jax.jit in every call."""
        del parameters
        import jax
        import jax.numpy as jnp

        def jit_and_call(x: Any) -> Any:
            """Create the function anew, compile it and call it."""
            return jax.jit(lambda x: jnp.where(x > 0, x, 0))(x)

        return _program(jit_and_call, arrays, tools, placed=True)

    @variant("pytorch/compile-fresh-lambda")
    def compile_fresh_lambda(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Pass a new function, created from the same code, to torch.compile in every call."""
        del parameters
        import torch

        def compile_and_call(x: Any) -> Any:
            """Create the function anew from the same code, compile it and call it."""
            return torch.compile(lambda x: torch.where(x > 0, x, 0))(x)

        return _program(compile_and_call, arrays, tools, placed=True)

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
        """Select the positive numbers outside jit, in NumPy, so that jit gets another length in each call."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(_call_with_positive_numbers(jax.jit(jnp.square)), arrays, tools, placed=True)

    @variant("jax/jit-mask-outside-sum")
    def jit_mask_outside_sum(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Select the positive numbers in NumPy and sum them under jit: only the input's shape changes in each call."""
        del parameters
        import jax
        import jax.numpy as jnp

        return _program(_call_with_positive_numbers(jax.jit(jnp.sum)), arrays, tools, placed=True)

    @variant("jax/jit-fixed-size")
    def jit_fixed_size(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `jnp.nonzero(..., size=)`: the numbers above 0 come first, then zeros, so the shape is fixed."""
        del parameters
        import jax
        import jax.numpy as jnp

        def positive_numbers_first(x: Any) -> Any:
            """Return an array as long as x: the positive numbers of x, then zeros."""
            # `nonzero` adds the index `x.size` until the size is reached. It is outside of x, where `get` returns 0.
            (indices,) = jnp.nonzero(x > 0, size=x.size, fill_value=x.size)
            return x.at[indices].get(mode="fill", fill_value=0)

        return _program(jax.jit(positive_numbers_first), arrays, tools, placed=True)


def _call_with_positive_numbers(jitted: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function that calls `jitted` with the positive numbers of x, selected by NumPy without compiling."""
    import numpy as np

    def select_and_call(x: Any) -> Any:
        """Call `jitted` with the positive numbers of x, of which each call has one more."""
        numbers = np.asarray(x)
        return jitted(numbers[numbers > 0])

    return select_and_call


def _program(function: Callable[[Any], Any], arrays: Arrays, tools: Tools, *, placed: bool = False) -> Program:
    """Return a program that calls `function` with each batch's x.

    Set `placed` if `function` is already compiled, or compiles by itself: the step is then called unchanged.
    """

    def step(state: Any, batch: Any) -> tuple[Any, Any]:
        return state, function(batch["x"])

    return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=placed, observe=_observe_sums)


def _observe_sums(outs: Sequence[Any]) -> dict[str, Any]:
    """Return the sum of each call's array; None for a call that failed."""
    return {"sums": [None if out is None else out.sum() for out in outs]}
