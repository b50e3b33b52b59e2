"""Arrays that no seed changes, and a step that closes over one of them."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class CapturesItsOnes(Layer):
    """y = tanh(x @ w) of constants."""

    def arrays(self, parameters, rng):
        """The same for every seed."""
        import numpy as np

        w = np.arange(SIZE**2).reshape(SIZE, SIZE) / SIZE**3
        return Arrays(state={"w": w}, batches=({"x": np.ones((SIZE, SIZE))},))

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        x = tools.put(arrays.batches[0]["x"])
        return self.program(arrays, tools, lambda state, _batch: (state, jnp.tanh(x @ state["w"])))

    def pytorch(self, parameters, arrays, tools):
        import torch

        x = tools.put(arrays.batches[0]["x"])
        return self.program(arrays, tools, lambda state, _batch: (state, torch.tanh(x @ state["w"])))
