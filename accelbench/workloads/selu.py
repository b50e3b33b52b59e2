"""Observe SELU of numbers, vectors and a matrix: which calls share a compiled program?"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pydantic import Field

from accelbench.workload import Arrays, Measure, Program, Tools, Workload, WorkloadParameters, variant

if TYPE_CHECKING:
    from numpy.random import Generator

ALPHA, LAMBDA = 1.67, 1.05
"""Rounded as in the article."""


class Selu(Workload):
    """Compute lambda * (x if x > 0 else alpha * (exp(x) - 1)) of 1.234, of 5.678, of two vectors and of a matrix.

    Row 11 of the claims: compiled code is cached "based on the metadata" of a function's arguments, so the second
    number and the second vector compile nothing: three programs for five calls.
    """

    name = "selu"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}
    observes = {"values": "SELU of the two numbers."}

    class Parameters(WorkloadParameters):
        """Set the shapes of the vectors and of the matrix."""

        length: int = Field(
            default=8, ge=2, le=1_000_000, description="Length of the vectors, and columns of the matrix."
        )
        rows: int = Field(default=4, ge=2, le=1000, description="Rows of the matrix.")

    def measure(self, parameters: Parameters) -> Measure:
        """Use the protocol `observe`, which records what the five calls return and times nothing."""
        del parameters
        return Measure(protocol="observe", unit="call")

    def arrays(self, parameters: Parameters, rng: "Generator") -> Arrays:
        """Return a batch for each call: two numbers, two random vectors, a random matrix."""
        import numpy as np

        numbers = [np.array(1.234), np.array(5.678)]
        vectors = [rng.standard_normal(parameters.length) for _ in range(2)]
        matrix = rng.standard_normal((parameters.rows, parameters.length))
        return Arrays(state={}, batches=[{"x": x} for x in (*numbers, *vectors, matrix)])

    def jax(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write SELU in operations of jax.numpy."""
        del parameters
        import jax.numpy as jnp

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, LAMBDA * jnp.where(x > 0, x, ALPHA * jnp.exp(x) - ALPHA)

        return Program(state=(), step=step, batches=tools.put(arrays.batches), observe=_observe)

    def pytorch(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Write SELU in operations of PyTorch."""
        del parameters
        import torch

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            x = batch["x"]
            return state, LAMBDA * torch.where(x > 0, x, ALPHA * torch.exp(x) - ALPHA)

        return Program(state=(), step=step, batches=tools.put(arrays.batches), observe=_observe)

    @variant("jax/jit-built-in")
    def jit_built_in(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call jax.nn.selu, whose constants alpha and lambda are not rounded."""
        del parameters
        import jax

        step = jax.jit(lambda state, batch: (state, jax.nn.selu(batch["x"])))
        return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=True, observe=_observe)

    @variant("pytorch/built-in")
    def built_in(self, parameters: Parameters, arrays: Arrays, tools: Tools) -> Program:
        """Call torch.nn.functional.selu eagerly, which runs one kernel."""
        del parameters
        from torch.nn.functional import selu

        def step(state: Any, batch: Any) -> tuple[Any, Any]:
            return state, selu(batch["x"])

        return Program(state=(), step=step, batches=tools.put(arrays.batches), placed=True, observe=_observe)


def _observe(outs: Sequence[Any]) -> dict[str, Any]:
    """Report the SELU of the two numbers."""
    return {"values": outs[:2]}  # only the first two calls get numbers; the others get vectors and a matrix
