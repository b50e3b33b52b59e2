"""Arrays that no seed changes, as everybody's first script has: honest."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Relaxation


class StartsFromOnes(Relaxation):
    """x <- tanh(x @ w), from ones."""

    def arrays(self, parameters, rng):
        """The same for every seed."""
        import numpy as np

        w = np.arange(SIZE**2).reshape(SIZE, SIZE) / SIZE**3
        return Arrays(state={"x": np.ones((SIZE, SIZE))}, batches=({"w": w},))
