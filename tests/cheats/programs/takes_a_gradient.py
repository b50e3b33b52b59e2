"""Takes a gradient, for which JAX computes a value as well that nobody uses: fair."""

from cheats.honest import Relaxation


class TakesAGradient(Relaxation):
    """x <- cos(x), as the gradient of sum(sin(x))."""

    def reference(self, parameters, arrays, units):
        """By the derivative."""
        import numpy as np

        x = arrays.state["x"]
        for _ in range(units):
            x = np.cos(x)
        return {"x": x}

    def jax(self, parameters, arrays, tools):
        import jax
        import jax.numpy as jnp

        gradient = jax.grad(lambda x: jnp.sin(x).sum())
        return self.program(arrays, tools, lambda state, _: ({"x": gradient(state["x"])}, None))

    def pytorch(self, parameters, arrays, tools):
        import torch

        gradient = torch.func.grad(lambda x: torch.sin(x).sum())
        return self.program(arrays, tools, lambda state, _: ({"x": gradient(state["x"])}, None))
