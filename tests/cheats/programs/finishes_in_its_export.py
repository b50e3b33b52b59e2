"""Leaves its last product for the way out, where nobody takes the time."""

import numpy as np

from accelbench.workload import Cost
from cheats.honest import SIZE, Layer


class FinishesInItsExport(Layer):
    """y = tanh(x @ w) @ w."""

    def reference(self, parameters, arrays, units):
        w = arrays.state["w"]
        return {"y": np.tanh(arrays.batches[0]["x"] @ w) @ w}

    def cost(self, parameters, float_bytes):
        return Cost(flops=4.0 * SIZE**3, bytes=3.0 * SIZE**2 * float_bytes)

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.program(
            arrays, tools, lambda s, b: (s, jnp.tanh(b["x"] @ s["w"])), export=lambda s, y: {"y": y @ s["w"]}
        )

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda s, b: (s, torch.tanh(b["x"] @ s["w"]) @ s["w"]))
