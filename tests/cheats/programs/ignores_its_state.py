"""Closes over the starting array in place of the state that it is given."""

from cheats.honest import Relaxation


class IgnoresItsState(Relaxation):
    """x <- tanh(x @ w), but always from the same x."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        x = tools.put(arrays.state["x"])
        return self.program(arrays, tools, lambda _state, batch: ({"x": jnp.tanh(x @ batch["w"])}, None))

    def pytorch(self, parameters, arrays, tools):
        import torch

        x = tools.put(arrays.state["x"])
        return self.program(arrays, tools, lambda _state, batch: ({"x": torch.tanh(x @ batch["w"])}, None))
