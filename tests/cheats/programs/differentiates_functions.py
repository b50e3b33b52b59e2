"""Transforms a function to get second derivatives, and declares nothing: honest."""

from accelbench.workload import Arrays
from cheats.honest import Layer

SIZE = 4


class DifferentiatesFunctions(Layer):
    """y = the Hessian of log |det(a + diag(x))| for the rows x of a batch."""

    def arrays(self, parameters, rng):
        import numpy as np

        a = 3 * np.eye(SIZE) + 0.3 * rng.standard_normal((SIZE, SIZE))
        return Arrays(state={}, batches=({"a": a, "x": rng.random((16, SIZE))},))

    def reference(self, parameters, arrays, units):
        """Compute -inv[i, j] inv[j, i], where inv is the matrix's inverse."""
        import numpy as np

        a, x = arrays.batches[0]["a"], arrays.batches[0]["x"]
        inverses = np.linalg.inv(a + np.eye(SIZE) * x[:, None, :])
        return {"y": -inverses * np.swapaxes(inverses, 1, 2)}

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        def step(state, batch):
            hessian = jax.hessian(lambda x: jnp.linalg.slogdet(batch["a"] + jnp.diag(x))[1])
            return state, jax.vmap(hessian)(batch["x"])

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            hessian = torch.func.hessian(lambda x: torch.linalg.slogdet(batch["a"] + torch.diag(x)).logabsdet)
            return state, torch.vmap(hessian)(batch["x"])

        return self.program(arrays, tools, step)
