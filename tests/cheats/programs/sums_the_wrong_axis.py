"""Takes the softmax over the wrong axis in JAX."""

from cheats.honest import Layer


class SumsTheWrongAxis(Layer):
    """y = softmax(x @ w)."""

    def reference(self, parameters, arrays, units):
        """Over rows."""
        import numpy as np

        y = np.exp(arrays.batches[0]["x"] @ arrays.state["w"])
        return {"y": y / y.sum(axis=1, keepdims=True)}

    def jax(self, parameters, arrays, tools):
        import jax

        return self.program(
            arrays, tools, lambda state, batch: (state, jax.nn.softmax(batch["x"] @ state["w"], axis=0))
        )

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda state, batch: (state, torch.softmax(batch["x"] @ state["w"], dim=1)))
