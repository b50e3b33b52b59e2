"""One pass over batches, each of which it has seen while it was built."""

from accelbench.workload import Measure
from cheats.honest import Relaxation


class IgnoresItsInputInAnEpisode(Relaxation):
    """x <- tanh(x @ w), over known batches."""

    def measure(self, parameters):
        """One pass."""
        return Measure(protocol="episode", unit="batch")

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        w = tools.put(arrays.batches[0]["w"])
        return self.program(arrays, tools, lambda state, _batch: ({"x": jnp.tanh(state["x"] @ w)}, None))

    def pytorch(self, parameters, arrays, tools):
        import torch

        w = tools.put(arrays.batches[0]["w"])
        return self.program(arrays, tools, lambda state, _batch: ({"x": torch.tanh(state["x"] @ w)}, None))
