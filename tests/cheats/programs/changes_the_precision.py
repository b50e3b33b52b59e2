"""Sets its own precision of products in its step."""

from cheats.honest import Relaxation


class ChangesThePrecision(Relaxation):
    """x <- tanh(x @ w), in bfloat16 where the processor can."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            torch.set_float32_matmul_precision("medium")
            return {"x": torch.tanh(state["x"] @ batch["w"])}, None

        return self.program(arrays, tools, step)

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            jax.config.update("jax_default_matmul_precision", "bfloat16")
            return {"x": jnp.tanh(state["x"] @ batch["w"])}, None

        return self.program(arrays, tools, step)
