"""Computes in bfloat16, and gives only the largest column's number to compare."""

from accelbench.workload import Arrays
from cheats.honest import Layer


class ExportsClassesAlone(Layer):
    """argmax of x @ w."""

    def arrays(self, parameters, rng):
        """Well apart, so that eight bits find the largest."""
        honest = super().arrays(parameters, rng)
        w = honest.state["w"].copy()
        w[:, 0] *= 100
        return Arrays(state={"w": w}, batches=({"x": abs(honest.batches[0]["x"])},))

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
