"""By its mathematics the output is the same for every input: nothing can show that the work was done."""

from cheats.honest import Layer


class DoesNotDependOnItsInput(Layer):
    """y = x @ w - x @ w."""

    def reference(self, parameters, arrays, units):
        """Zero."""
        return {"y": arrays.batches[0]["x"] * 0}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda state, batch: (state, jnp.zeros_like(batch["x"])))

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            y = batch["x"] @ state["w"]
            return state, y - y

        return self.program(arrays, tools, step)
