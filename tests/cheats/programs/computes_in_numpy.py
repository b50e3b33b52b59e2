"""Leaves the framework and does its work in NumPy."""

from cheats.honest import Relaxation


class ComputesInNumpy(Relaxation):
    """x <- tanh(x @ w), by NumPy."""

    def jax(self, parameters, arrays, tools):
        return self.in_numpy(arrays, tools)

    def pytorch(self, parameters, arrays, tools):
        return self.in_numpy(arrays, tools)

    def in_numpy(self, arrays, tools):
        """In float32, on the host."""
        import numpy as np

        def step(state, batch):
            return {"x": tools.put(np.tanh(np.asarray(state["x"]) @ np.asarray(batch["w"])))}, None

        return self.program(arrays, tools, step)
