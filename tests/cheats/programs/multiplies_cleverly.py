"""A complex product by three real ones in place of four, as Gauss did: a smaller constant, and fair."""

from accelbench.workload import Arrays, Cost
from cheats.honest import SIZE, Relaxation


class MultipliesCleverly(Relaxation):
    """x + iy <- tanh of the parts of (x + iy)(a + ib)."""

    def arrays(self, parameters, rng):
        """Real and imaginary parts."""
        x, y, a, b = rng.standard_normal((4, SIZE, SIZE))
        return Arrays(state={"x": x, "y": y}, batches=({"a": a / 16, "b": b / 16},))

    def reference(self, parameters, arrays, units):
        """In complex numbers."""
        import numpy as np

        z, w = arrays.state["x"] + 1j * arrays.state["y"], arrays.batches[0]["a"] + 1j * arrays.batches[0]["b"]
        for _ in range(units):
            z = z @ w
            z = np.tanh(z.real) + 1j * np.tanh(z.imag)
        return {"x": z.real, "y": z.imag}

    def cost(self, parameters, float_bytes):
        """Four products."""
        return Cost(flops=8.0 * SIZE**3, bytes=6.0 * SIZE**2 * float_bytes)

    def jax(self, parameters, arrays, tools):
        import jax.numpy as jnp

        def step(state, batch):
            x, y, a, b = state["x"], state["y"], batch["a"], batch["b"]
            first, second, third = x @ a, y @ b, (x + y) @ (a + b)
            return {"x": jnp.tanh(first - second), "y": jnp.tanh(third - first - second)}, None

        return self.program(arrays, tools, step)

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            x, y, a, b = state["x"], state["y"], batch["a"], batch["b"]
            return {"x": torch.tanh(x @ a - y @ b), "y": torch.tanh(x @ b + y @ a)}, None

        return self.program(arrays, tools, step)
