"""A matrix that no seed changes and that has to stay symmetric: honest."""

from accelbench.workload import Arrays
from cheats.honest import SIZE, Layer


class DecomposesAConstantMatrix(Layer):
    """y = the lower Cholesky factor of a."""

    def arrays(self, parameters, rng):
        """Two on the diagonal, minus one beside it, as of a second derivative."""
        import numpy as np

        a = 2 * np.eye(SIZE) - np.eye(SIZE, k=1) - np.eye(SIZE, k=-1)
        return Arrays(state={}, batches=({"a": a},))

    def reference(self, parameters, arrays, units):
        """By LAPACK."""
        import numpy as np

        return {"y": np.linalg.cholesky(arrays.batches[0]["a"])}

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        return self.program(arrays, tools, lambda state, batch: (state, jnp.linalg.cholesky(batch["a"])))

    def pytorch(self, parameters, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda state, batch: (state, torch.linalg.cholesky(batch["a"])))
