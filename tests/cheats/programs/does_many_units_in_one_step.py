"""A step of ten units that ignores its state: one call is compared after ten units, and right."""

from cheats.honest import Relaxation


class DoesManyUnitsInOneStep(Relaxation):
    """x <- tanh(x @ w), ten times, from the start."""

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.ten_times(jnp.tanh, arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.ten_times(torch.tanh, arrays, tools)

    def ten_times(self, tanh, arrays, tools):
        """From the start, whatever the state."""
        start = tools.put(arrays.state["x"])

        def step(_state, batch):
            x = start
            for _ in range(10):
                x = tanh(x @ batch["w"])
            return {"x": x}, None

        return self.program(arrays, tools, step, units=10)
