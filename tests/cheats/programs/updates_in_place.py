"""Writes the new state into the old one's memory, as optimisers do: fair."""

from cheats.honest import Relaxation


class UpdatesInPlace(Relaxation):
    """x <- tanh(x @ w), in place."""

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            state["x"].copy_(state["x"] @ batch["w"]).tanh_()
            return state, None

        return self.program(arrays, tools, step)

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            return {"x": jnp.tanh(state["x"] @ batch["w"])}, None

        return self.program(arrays, tools, step, donate=True)
