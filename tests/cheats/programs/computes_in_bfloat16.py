"""Computes in bfloat16, and returns float32."""

from cheats.honest import Relaxation


class ComputesInBfloat16(Relaxation):
    """x <- tanh(x @ w) in eight bits."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            x, w = state["x"].astype(jnp.bfloat16), batch["w"].astype(jnp.bfloat16)
            return {"x": jnp.tanh(x @ w).astype(jnp.float32)}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return {"x": torch.tanh(state["x"].bfloat16() @ batch["w"].bfloat16()).float()}, None

        return self.program(arrays, tools, step)
