"""A learning rate so small that doing nothing is within the tolerance; it does nothing."""

from cheats.honest import Relaxation


class TakesStepsTooSmallToSee(Relaxation):
    """x <- x + 1e-8 tanh(x @ w)."""

    def reference(self, parameters, arrays, units):
        """Hardly moves."""
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"]
        for _ in range(units):
            x = x + 1e-8 * np.tanh(x @ w)
        return {"x": x}

    def altered(self, step):
        return lambda state, _batch: ({"x": state["x"] * 1}, None)
