"""Its canonical form is the same for all outputs, so that any would be right; it computes half."""

from cheats.honest import Relaxation


class ComparesNothing(Relaxation):
    """x <- tanh(x @ w)."""

    def canonical(self, parameters, arrays, outputs):
        """Return what the reference would, whatever the outputs are."""
        import numpy as np

        return {"x": np.tanh(arrays.state["x"])}

    def altered(self, step):
        return lambda state, _batch: ({"x": state["x"] * 0.5}, None)
