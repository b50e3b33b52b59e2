"""Computes half of the rows."""

from cheats.honest import Relaxation


class ComputesHalf(Relaxation):
    """x <- tanh(x @ w) in the upper half of x."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            x = state["x"]
            return {"x": x.at[:32].set(jnp.tanh(x[:32] @ batch["w"]))}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            x = state["x"].clone()
            x[:32] = torch.tanh(x[:32] @ batch["w"])
            return {"x": x}, None

        return self.program(arrays, tools, step)
