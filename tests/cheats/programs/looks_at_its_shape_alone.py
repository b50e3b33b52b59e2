"""Uses of its input nothing but its shape."""

from cheats.honest import Relaxation


class LooksAtItsShapeAlone(Relaxation):
    """x <- tanh(x @ w), of ones."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.program(
            arrays, tools, lambda state, batch: ({"x": jnp.tanh(jnp.ones_like(state["x"]) @ batch["w"])}, None)
        )

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(
            arrays, tools, lambda state, batch: ({"x": torch.tanh(torch.ones_like(state["x"]) @ batch["w"])}, None)
        )
