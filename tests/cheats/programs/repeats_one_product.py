"""Asks for the same product a hundred times: the compiler does it once."""

from accelbench.workload import Cost
from cheats.honest import Layer


class RepeatsOneProduct(Layer):
    """y = tanh(x @ w), a hundred times over."""

    def cost(self, parameters, float_bytes):
        """Of a hundred products."""
        once = super().cost(parameters, float_bytes)
        return Cost(flops=100 * once.flops, bytes=100 * once.bytes)

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            y = jnp.zeros_like(batch["x"])
            return state, jax.lax.fori_loop(0, 100, lambda _, y: y + jnp.tanh(batch["x"] @ state["w"]), y) / 100

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return state, sum(torch.tanh(batch["x"] @ state["w"]) for _ in range(100)) / 100

        return self.program(arrays, tools, step)
