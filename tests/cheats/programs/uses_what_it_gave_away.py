"""Gives its state away and keeps using it."""

from cheats.honest import Relaxation


class UsesWhatItGaveAway(Relaxation):
    """x <- tanh(x @ w), of an array that is gone."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        state = tools.put(arrays.state)
        honest = jax.jit(lambda state, batch: ({"x": jnp.tanh(state["x"] @ batch["w"])}, None), donate_argnums=0)
        return self.program(arrays, tools, lambda _state, batch: honest(state, batch))
