"""Computes in bfloat16, and gives only the largest column's number to compare."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class ExportsClassesAlone(Layer):
    """argmax of x @ w."""

    def arrays(self, parameters, rng):
        """Well apart, so that eight bits find the largest."""
        import numpy as np

        x, w = rng.standard_normal((2, SIZE, SIZE)) / SIZE
        return Arrays(state={"w": w + np.eye(SIZE)}, batches=({"x": x + rng.permutation(np.eye(SIZE))},))

    def reference(self, parameters, arrays, units):
        """Whole numbers."""
        return {"y": (arrays.batches[0]["x"] @ arrays.state["w"]).argmax(axis=1).astype("int32")}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            return state, (batch["x"].astype(jnp.bfloat16) @ state["w"].astype(jnp.bfloat16)).argmax(axis=1)

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            return state, (batch["x"].bfloat16() @ state["w"].bfloat16()).argmax(dim=1)

        return self.program(arrays, tools, step)
