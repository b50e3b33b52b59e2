"""Starts where nothing moves; doing nothing is right."""

from accelbench.workload import Arrays
from cheats.honest import Relaxation


class StartsFromZeros(Relaxation):
    """x <- tanh(x @ w), from zeros."""

    def arrays(self, parameters, rng):
        """Zeros, as a state often begins."""
        honest = super().arrays(parameters, rng)
        return Arrays(state={"x": 0 * honest.state["x"]}, batches=honest.batches)

    def altered(self, step):
        return lambda state, _batch: ({"x": state["x"] * 1}, None)
