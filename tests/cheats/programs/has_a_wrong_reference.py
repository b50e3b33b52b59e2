"""Both variants are right and agree with each other; the reference is wrong."""

from cheats.honest import Relaxation


class HasAWrongReference(Relaxation):
    """x <- tanh(x @ w), by a reference that transposes w."""

    def reference(self, parameters, arrays, units):
        """Wrong."""
        import numpy as np

        x, w = arrays.state["x"], arrays.batches[0]["w"]
        for _ in range(units):
            x = np.tanh(x @ w.T)
        return {"x": x}
