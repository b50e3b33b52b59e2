"""Keeps its weights in an attribute, as a class with methods does: honest where Python runs in every call."""

from cheats.honest import Layer


class KeepsItsWeightsInItself(Layer):
    """y = tanh(x @ w) of self.w."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        self.w = tools.put(arrays.state["w"])
        return self.program(arrays, tools, lambda state, batch: (state, jnp.tanh(batch["x"] @ self.w)))

    def pytorch(self, parameters, arrays, tools):
        import torch

        self.w = tools.put(arrays.state["w"])
        return self.program(arrays, tools, lambda state, batch: (state, torch.tanh(batch["x"] @ self.w)))
