"""Adds rows by their segment, as graph networks do: a scatter, whose function adds two numbers."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Relaxation


class SumsBySegment(Relaxation):
    """x <- the sums of the rows of tanh(x) by segment."""

    def arrays(self, parameters, rng):
        """Rows, and the segment of each."""
        ids = rng.integers(0, SIZE, SIZE)
        return Arrays(state={"x": rng.standard_normal((SIZE, SIZE))}, batches=({"ids": ids},))

    def reference(self, parameters, arrays, units):
        """Row by row."""
        import numpy as np

        x, ids = arrays.state["x"], arrays.batches[0]["ids"]
        for _ in range(units):
            sums = np.zeros_like(x)
            np.add.at(sums, ids, np.tanh(x))
            x = sums
        return {"x": x}

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            return {"x": jax.ops.segment_sum(jnp.tanh(state["x"]), batch["ids"], num_segments=SIZE)}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return {"x": torch.zeros(SIZE, SIZE).index_add_(0, batch["ids"], torch.tanh(state["x"]))}, None

        return self.program(arrays, tools, step)
