"""Quantiles of a polynomial's values; its reference refuses a leading coefficient that is not 1: honest."""

from accelbench.workload import Arrays
from cheats.honest import Layer

COEFFICIENTS = (1.0, -0.75, 0.3)
LEVELS = (0.25, 0.5, 0.75)


class TakesAMonicPolynomial(Layer):
    """y = quartiles of x**2 - 0.75 x + 0.3 in each row; `torch.quantile` computes its ranks in float64."""

    def arrays(self, parameters, rng):
        import numpy as np

        return Arrays(state={}, batches=({"c": np.array(COEFFICIENTS), "x": rng.standard_normal((64, 64))},))

    def reference(self, parameters, arrays, units):
        """Check the coefficients, as SciPy's `sosfilt` does."""
        import numpy as np

        c, x = arrays.batches[0]["c"], arrays.batches[0]["x"]
        if c[0] != 1:
            raise ValueError("the leading coefficient has to be 1")
        return {"y": np.quantile(x * x + c[1] * x + c[2], LEVELS, axis=1)}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            c, x = batch["c"], batch["x"]
            return state, jnp.quantile(x * x + c[1] * x + c[2], jnp.array(LEVELS), axis=1)

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            c, x = batch["c"], batch["x"]
            values = x * x + c[1] * x + c[2]
            return state, torch.quantile(values, torch.tensor(LEVELS, dtype=x.dtype), dim=1)

        return self.program(arrays, tools, step)
