"""Its numbers do not fit into float16."""

from cheats.honest import Layer


class OverflowsFloat16(Layer):
    """y = 1e4 x @ w."""

    def reference(self, parameters, arrays, units):
        """They fit into float64."""
        return {"y": 1e6 * arrays.batches[0]["x"] @ arrays.state["w"]}

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, 1e4 * (100 * batch["x"]) @ state["w"]))

    def pytorch(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, 1e4 * (100 * batch["x"]) @ state["w"]))
