"""Softmax over rows, written out."""

from pydantic import Field

from accelbench.workload import Arrays, Cost, Program, Workload, WorkloadParameters


class SoftmaxRows(Workload):
    """x <- 4 softmax(x) over the last axis of x, (rows, columns)."""

    name = "softmax-rows"
    modes = {"jax": ("jit", "op-by-op"), "pytorch": ("eager", "compile")}

    class Parameters(WorkloadParameters):
        """Shape of x."""

        rows: int = Field(default=1024, ge=1, le=1_000_000, description="Rows, each by itself.")
        columns: int = Field(default=1024, ge=2, le=100_000, description="Numbers in a row.")

    def arrays(self, parameters, rng):
        """Standard normal numbers: the same bits for every variant."""
        return Arrays(state={"x": rng.standard_normal((parameters.rows, parameters.columns))})

    def reference(self, parameters, arrays, units):
        """What is right after so many steps, in NumPy's float64."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            shifted = np.exp(x - x.max(axis=-1, keepdims=True))
            x = 4 * shifted / shifted.sum(axis=-1, keepdims=True)
        return {"x": x}

    def cost(self, parameters, float_bytes):
        """Six operations a number, an exponential counted as one; fused, x is read once and written once."""
        numbers = parameters.rows * parameters.columns
        return Cost(flops=6.0 * numbers, bytes=2.0 * numbers * float_bytes)

    def jax(self, parameters, arrays, tools):
        """The first script."""
        import jax.numpy as jnp

        def step(x, _batch):
            shifted = jnp.exp(x - x.max(axis=-1, keepdims=True))
            return 4 * shifted / shifted.sum(axis=-1, keepdims=True), None

        return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})

    def pytorch(self, parameters, arrays, tools):
        """The second script."""
        import torch

        def step(x, _batch):
            shifted = torch.exp(x - x.amax(dim=-1, keepdim=True))
            return 4 * shifted / shifted.sum(dim=-1, keepdim=True), None

        return Program(state=tools.put(arrays.state["x"]), step=step, export=lambda x, _: {"x": x})
