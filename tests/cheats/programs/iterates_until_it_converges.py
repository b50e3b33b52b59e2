"""As many iterations as it takes, which is fewer once it has converged: honest."""

from cheats.honest import Relaxation


class IteratesUntilItConverges(Relaxation):
    """x <- the root of w, by Newton's method, from x."""

    def reference(self, parameters, arrays, units):
        """By NumPy."""
        import numpy as np

        return {"x": np.sqrt(1 + abs(arrays.batches[0]["w"]))}

    def pytorch(self, parameters, arrays, tools):
        def step(state, batch):
            x, w = 1 + state["x"].abs(), 1 + batch["w"].abs()
            while (x * x - w).abs().max() > 1e-6:
                x = (x + w / x) / 2
            return {"x": x}, None

        return self.program(arrays, tools, step)
