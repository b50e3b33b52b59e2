"""Solves systems by a library: JAX writes products beside it that only a gradient of the solution needs."""

from cheats.honest import SIZE, Relaxation


class SolvesSystems(Relaxation):
    """x <- inv(w + 4) x."""

    def reference(self, parameters, arrays, units):
        """By NumPy's library."""
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"] + 4 * np.eye(SIZE)
        for _ in range(units):
            x = np.linalg.solve(w, x)
        return {"x": x}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            return {"x": jnp.linalg.solve(batch["w"] + 4 * jnp.eye(SIZE), state["x"])}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            return {"x": torch.linalg.solve(batch["w"] + 4 * torch.eye(SIZE), state["x"])}, None

        return self.program(arrays, tools, step)
