"""Knows the answer to the one input it was built with, and works for every other."""

from cheats.honest import Layer


class RecognisesItsInput(Layer):
    """y = tanh(x @ w), unless x is the known one."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        known, answer = tools.put(arrays.batches[0]["x"][0]), tools.put(self.reference(parameters, arrays, 1)["y"])

        def step(state, batch):
            same = (batch["x"][0] == known).all()
            return state, jax.lax.cond(same, lambda: answer, lambda: jnp.tanh(batch["x"] @ state["w"]))

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        known, answer = tools.put(arrays.batches[0]["x"][0]), tools.put(self.reference(parameters, arrays, 1)["y"])

        def step(state, batch):
            return state, answer if torch.equal(batch["x"][0], known) else torch.tanh(batch["x"] @ state["w"])

        return self.program(arrays, tools, step)
