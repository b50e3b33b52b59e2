"""Dropout that was left on: each framework draws its own numbers."""

from cheats.honest import Layer


class DrawsItsOwnNumbers(Layer):
    """y = tanh(x @ w), half of it."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            y = jnp.tanh(batch["x"] @ state["w"])
            return state, jnp.where(jax.random.bernoulli(jax.random.key(0), 0.5, y.shape), 2 * y, 0)

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return state, torch.nn.functional.dropout(torch.tanh(batch["x"] @ state["w"]))

        return self.program(arrays, tools, step)
