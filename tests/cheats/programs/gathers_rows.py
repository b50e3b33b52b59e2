"""Whole numbers that must stay what they are, positions of rows: honest."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class GathersRows(Layer):
    """y = x[order]."""

    def arrays(self, parameters, rng):
        """Positions in the order of a book."""
        import numpy as np

        return Arrays(state={"x": np.eye(SIZE)}, batches=({"order": np.arange(SIZE)[::-1].copy()},))

    def reference(self, parameters, arrays, units):
        """The rows."""
        return {"y": arrays.state["x"][arrays.batches[0]["order"]]}

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, state["x"][batch["order"]]))

    def pytorch(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, state["x"][batch["order"]]))
