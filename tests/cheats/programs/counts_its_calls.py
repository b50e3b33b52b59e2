"""A side effect of Python decides the result: traced once in JAX, counted in PyTorch."""

from cheats.honest import Relaxation


class CountsItsCalls(Relaxation):
    """x <- tanh(x @ w) + how often it was called."""

    def altered(self, step):
        calls = []

        def cheating(state, batch):
            calls.append(1)
            state, out = step(state, batch)
            return {"x": state["x"] + len(calls) - 1}, out

        return cheating

    def reference(self, parameters, arrays, units):
        """Counted."""
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"]
        for unit in range(units):
            x = np.tanh(x @ w) + unit
        return {"x": x}
