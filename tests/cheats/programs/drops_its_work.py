"""Costs a product that nobody returns, as where a loss is computed and forgotten: the compiler drops it."""

from cheats.honest import Relaxation


class DropsItsWork(Relaxation):
    """x <- tanh(x), beside a product."""

    def reference(self, parameters, arrays, units):
        """Of the tanh alone."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            x = np.tanh(x)
        return {"x": x}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            _loss = (state["x"] @ batch["w"]).sum()
            return {"x": jnp.tanh(state["x"])}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            _loss = (state["x"] @ batch["w"]).sum()
            return {"x": torch.tanh(state["x"])}, None

        return self.program(arrays, tools, step)
