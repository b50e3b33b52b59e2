"""Whole numbers alone, which no seed changes: honest, and nothing can show it."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class CountsWholeNumbers(Layer):
    """y = x + w."""

    def arrays(self, parameters, rng):
        """In order."""
        import numpy as np

        return Arrays(state={"w": np.arange(SIZE)}, batches=({"x": np.arange(SIZE)},))

    def reference(self, parameters, arrays, units):
        """Exactly."""
        return {"y": arrays.batches[0]["x"] + arrays.state["w"]}

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, batch["x"] + state["w"]))

    def pytorch(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, batch["x"] + state["w"]))
