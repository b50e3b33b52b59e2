"""Closes over the weights: common, and a compiler may do with constants what it cannot do with arguments."""

from cheats.honest import Relaxation


class CapturesItsWeights(Relaxation):
    """x <- tanh(x @ w), where w is a constant."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        w = tools.put(arrays.batches[0]["w"])
        return self.program(arrays, tools, lambda state, _batch: ({"x": jnp.tanh(state["x"] @ w)}, None))

    def pytorch(self, parameters, arrays, tools):
        import torch

        w = tools.put(arrays.batches[0]["w"])
        return self.program(arrays, tools, lambda state, _batch: ({"x": torch.tanh(state["x"] @ w)}, None))
