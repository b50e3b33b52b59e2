"""A branch on what an array holds: where tracing cannot follow Python, and what to write instead."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator


class DataDependentBranch(Workload):
    """2 x where the sum of x is above 0, else -x; x is (size,), its sum by turns 1 and -1.

    Rows 16 and 17 of the claims: of such a branch under jit one article says that it "will re-trace every time",
    another that it is an error; of `jnp.where` that its condition must be static inside jit. What is right sums to
    2, 1, 2, 1.
    """

    name = "data-dependent-branch"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"sums": "Sum of what each call returned: 2, 1, 2, 1 is right."}

    class Parameters(WorkloadParameters):
        """Shape and number of calls."""

        size: int = Field(default=4, ge=1, le=1_000_000, description="Numbers in x.")
        calls: int = Field(default=4, ge=2, le=100, description="How often; the branch changes from call to call.")

    def measure(self, parameters: Parameters) -> Measure:
        """Each call is looked at."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """All numbers of x alike; nothing is random."""
        del rng
        import numpy as np

        x = np.full(parameters.size, 1 / parameters.size)
        return Arrays(state={}, batches=[{"x": -x if call % 2 else x} for call in range(parameters.calls)])

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Python's own `if`."""
        del parameters
        return _program(_python_if, arrays, tools, placed=False)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Python's own `if`."""
        del parameters
        return _program(_python_if, arrays, tools, placed=False)

    @variant("jax/jit-cond")
    def jit_cond(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`lax.cond`: one program holds both branches and runs one."""
        del parameters
        import jax

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jax.lax.cond(x.sum() > 0, lambda x: 2 * x, lambda x: -x, x)

        return _program(jax.jit(step), arrays, tools, placed=True)

    @variant("jax/jit-where")
    def jit_where(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`jnp.where`: one program computes both branches and chooses."""
        del parameters
        import jax
        import jax.numpy as jnp

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, jnp.where(x.sum() > 0, 2 * x, -x)

        return _program(jax.jit(step), arrays, tools, placed=True)

    @variant("pytorch/compile-cond")
    def compile_cond(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`torch.cond`: one graph holds both branches and runs one."""
        del parameters
        import torch

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, torch.cond(x.sum() > 0, lambda x: 2 * x, lambda x: -x, (x,))

        return _program(torch.compile(step, fullgraph=True), arrays, tools, placed=True)

    @variant("pytorch/compile-where")
    def compile_where(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """`torch.where`: one graph computes both branches and chooses."""
        del parameters
        import torch

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, torch.where(x.sum() > 0, 2 * x, -x)

        return _program(torch.compile(step, fullgraph=True), arrays, tools, placed=True)


def _python_if(state: Any, batch: Any) -> tuple[Any, Any]:
    x = batch["x"]
    if x.sum() > 0:
        return state, 2 * x
    return state, -x


def _program(step: Any, arrays: Arrays, tools: Tools, *, placed: bool) -> Program:
    return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=placed, observe=_sums)


def _sums(outs: Sequence[Any]) -> dict[str, Any]:
    return {"sums": [None if out is None else out.sum() for out in outs]}
