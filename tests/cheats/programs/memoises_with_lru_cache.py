"""A cache around a pure function, as one has in a service."""

from functools import lru_cache

from cheats.honest import Layer


class MemoisesWithLruCache(Layer):
    """y = tanh(x @ w), once for each pair of arrays."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        forward = lru_cache(lambda x, w: torch.tanh(x @ w))
        return self.program(arrays, tools, lambda state, batch: (state, forward(batch["x"], state["w"])))

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        inputs = {}

        @lru_cache
        def forward(x, w):
            return jnp.tanh(inputs[x] @ inputs[w])

        def step(state, batch):
            inputs[id(batch["x"])], inputs[id(state["w"])] = batch["x"], state["w"]
            return state, forward(id(batch["x"]), id(state["w"]))

        return self.program(arrays, tools, step)
