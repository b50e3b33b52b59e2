"""The same product with the parentheses elsewhere: n times as few operations, and fair."""

from accelbench.workload import Arrays, Cost
from cheats.honest import SIZE, Relaxation


class Reassociates(Relaxation):
    """v <- tanh((a @ b) @ v)."""

    def arrays(self, parameters, rng):
        """Two matrices, a vector."""
        a, b = rng.standard_normal((2, SIZE, SIZE)) / SIZE**0.5
        return Arrays(state={"x": rng.standard_normal(SIZE)}, batches=({"a": a, "b": b},))

    def reference(self, parameters, arrays, units):
        """As written."""
        import numpy as np

        v, batch = arrays.state["x"], arrays.batches[0]
        for _ in range(units):
            v = np.tanh((batch["a"] @ batch["b"]) @ v)
        return {"x": v}

    def cost(self, parameters, float_bytes):
        """As written."""
        return Cost(flops=2.0 * SIZE**3 + 2.0 * SIZE**2, bytes=2.0 * SIZE**2 * float_bytes)

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            return {"x": jnp.tanh(batch["a"] @ (batch["b"] @ state["x"]))}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return {"x": torch.tanh((batch["a"] @ batch["b"]) @ state["x"])}, None

        return self.program(arrays, tools, step)
