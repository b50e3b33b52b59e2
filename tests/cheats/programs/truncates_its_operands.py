"""Products of operands with TF32's ten bits, where float32 was asked for."""

from cheats.honest import Relaxation


class TruncatesItsOperands(Relaxation):
    """x <- tanh(x @ w) of shortened numbers."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def shortened(x):
            bits = jax.lax.bitcast_convert_type(x, jnp.int32)
            return jax.lax.bitcast_convert_type(bits & ~0x1FFF, jnp.float32)

        def step(state, batch):
            return {"x": jnp.tanh(shortened(state["x"]) @ shortened(batch["w"]))}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def shortened(x):
            return (x.view(torch.int32) & ~0x1FFF).view(torch.float32)

        def step(state, batch):
            return {"x": torch.tanh(shortened(state["x"]) @ shortened(batch["w"]))}, None

        return self.program(arrays, tools, step)
