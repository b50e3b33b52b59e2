"""Observe a branch on an array's values, which tracing cannot follow, and its alternatives."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class DataDependentBranch(Workload):
    """Return 2 x if the sum of x is above 0, else -x; x is (size,), and its sum alternates between 1 and -1.

    Rows 16 and 17 of the claims: about such a branch under jit, one article writes that it "will re-trace every time",
    another that it is an error, and about `jnp.where` that its condition must be static inside jit. The right outputs
    sum to 2, 1, 2, 1.
    """

    name = "data-dependent-branch"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"sums": "Sums of the returned arrays; right are 2, 1, 2, 1."}

    class Parameters(WorkloadParameters):
        """Set the shape and the number of calls."""

        size: int = Field(default=4, ge=1, le=1_000_000, description="Numbers in x.")
        calls: int = Field(
            default=4, ge=2, le=100, description="Number of calls; the branch changes from call to call."
        )

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a batch for each call: x (size,), whose sum is 1 in the first call, -1 in the second, then 1, ..."""
        del rng
        import numpy as np

        positive = np.full(parameters.size, 1 / parameters.size)
        batches = [{"x": positive if call % 2 == 0 else -positive} for call in range(parameters.calls)]
        return Arrays(state={}, batches=batches)

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Return 2 x or -x, chosen by a Python `if` on the sum of x."""
        del parameters
        return _program(_python_if, arrays, tools, placed=False)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Return 2 x or -x, chosen by a Python `if` on the sum of x."""
        del parameters
        return _program(_python_if, arrays, tools, placed=False)

    @variant("jax/jit-cond")
    def jit_cond(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `lax.cond`: the program contains both branches and runs one of them."""
        del parameters
        import jax

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jax.lax.cond(x.sum() > 0, lambda x: 2 * x, lambda x: -x, x)

        return _program(jax.jit(step), arrays, tools, placed=True)

    @variant("jax/jit-where")
    def jit_where(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `jnp.where`: the program computes both branches and selects one result."""
        del parameters
        import jax
        import jax.numpy as jnp

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jnp.where(x.sum() > 0, 2 * x, -x)

        return _program(jax.jit(step), arrays, tools, placed=True)

    @variant("pytorch/compile-cond")
    def compile_cond(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `torch.cond`: the graph contains both branches and runs one of them."""
        del parameters
        import torch

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, torch.cond(x.sum() > 0, lambda x: 2 * x, lambda x: -x, (x,))

        return _program(torch.compile(step, fullgraph=True), arrays, tools, placed=True)

    @variant("pytorch/compile-where")
    def compile_where(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Use `torch.where`: the graph computes both branches and selects one result."""
        del parameters
        import torch

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, torch.where(x.sum() > 0, 2 * x, -x)

        return _program(torch.compile(step, fullgraph=True), arrays, tools, placed=True)


def _python_if(state: Any, batch: Any) -> tuple[Any, Any]:
    """Return the state and, as the output, 2 x if the sum of x is above 0, else -x."""
    x = batch["x"]
    if x.sum() > 0:
        return state, 2 * x
    return state, -x


def _program(step: Any, arrays: Arrays, tools: Tools, *, placed: bool) -> Program:
    """Return a program that observes the sum of each output. Set `placed` if `step` is already compiled."""
    return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=placed, observe=_observe_sums)


def _observe_sums(outs: Sequence[Any]) -> dict[str, Any]:
    """Return the sum of each call's array; None for a call that failed."""
    return {"sums": [None if out is None else out.sum() for out in outs]}
