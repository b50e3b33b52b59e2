"""Exports complex numbers, in JAX with the wrong sign of the imaginary part."""

import numpy as np

from accelbench.workload import Cost
from cheats.honest import SIZE, Layer


class ExportsAComplexSum(Layer):
    """y = 2 x + 2i w."""

    def reference(self, p, a, units):
        return {"y": np.asarray(2 * a.batches[0]["x"] + 2j * a.state["w"])}

    def cost(self, p, fb):
        return Cost(flops=2.0 * SIZE**2, bytes=3.0 * SIZE**2 * fb)

    def jax(self, p, arrays, tools):
        import jax

        return self.program(arrays, tools, lambda s, b: (s, jax.lax.complex(b["x"] * 2, -2 * s["w"])))

    def pytorch(self, p, arrays, tools):
        import torch

        return self.program(arrays, tools, lambda s, b: (s, torch.complex(b["x"] * 2, s["w"] * 2)))
