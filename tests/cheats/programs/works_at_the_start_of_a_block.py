"""Counts in its state, and does nothing from the sixth step on; compiled just as well."""

from dataclasses import replace

from cheats.honest import Relaxation


class WorksAtTheStartOfABlock(Relaxation):
    """x <- tanh(x @ w), five times."""

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            work = lambda x: jnp.tanh(x @ batch["w"])  # noqa: E731
            x = jax.lax.cond(state["n"] < 5, work, lambda x: x, state["x"])
            return {"x": x, "n": state["n"] + 1}, None

        return self.counting(self.program(arrays, tools, step), jnp.int32(0))

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            x = torch.tanh(state["x"] @ batch["w"]) if state["n"] < 5 else state["x"]
            return {"x": x, "n": state["n"] + 1}, None

        return self.counting(self.program(arrays, tools, step), 0)

    def counting(self, program, zero):
        """With a counter in its state."""
        return replace(program, state={**program.state, "n": zero}, export=lambda state, _: {"x": state["x"]})
