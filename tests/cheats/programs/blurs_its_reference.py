"""Its reference draws noise, so that the tolerance is wide; its step computes in bfloat16."""

from cheats.honest import Relaxation


class BlursItsReference(Relaxation):
    """x <- tanh(x @ w), give or take."""

    def reference(self, parameters, arrays, units):
        """Another one each time."""
        import numpy as np

        right = super().reference(parameters, arrays, units)["x"]
        return {"x": right * (1 + 0.01 * np.random.default_rng().standard_normal(right.shape))}

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
