"""Sums whole numbers that do not fit, in the type that the framework has by default."""

from accelbench.workload import Arrays
from cheats.honest import Layer


class OverflowsAnInteger(Layer):
    """y = the sum of squares of whole numbers."""

    def arrays(self, parameters, rng):
        """Up to a million."""
        return Arrays(state={}, batches=({"x": rng.integers(0, 1_000_000, size=(64, 64)).astype("int32")},))

    def reference(self, parameters, arrays, units):
        """In 64 bits."""
        return {"y": (arrays.batches[0]["x"].astype("int64") ** 2).sum(axis=1)}

    def jax(self, parameters, arrays, tools):
        return self.program(arrays, tools, lambda state, batch: (state, (batch["x"] ** 2).sum(axis=1)))

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            return state, (batch["x"].long() ** 2).sum(dim=1)

        return self.program(arrays, tools, step)
