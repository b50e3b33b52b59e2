"""Does more in every fourth step, as micro-batches do; honest."""

from dataclasses import replace

import numpy as np

from cheats.honest import Relaxation


class AccumulatesGradients(Relaxation):
    """g <- g + tanh(x @ w); every fourth time x follows it in six small steps."""

    def reference(self, p, a, units):
        x, w = a.state["x"], a.batches[0]["w"]
        g = np.zeros_like(x)
        for i in range(units):
            g = g + np.tanh(x @ w)
            if (i + 1) % 4 == 0:
                for _ in range(6):
                    x = 0.9 * x + 0.01 * g
                g = 0 * g
        return {"x": x, "g": g}

    def pytorch(self, p, arrays, tools):
        import torch

        def step(s, b):
            x, g, n = s["x"], s["g"] + torch.tanh(s["x"] @ b["w"]), s["n"] + 1
            if n % 4 == 0:
                for _ in range(6):
                    x = 0.9 * x + 0.01 * g
                g = 0 * g
            return {"x": x, "g": g, "n": n}, None

        h = self.program(arrays, tools, step, export=lambda s, _: {"x": s["x"], "g": s["g"]})
        return replace(h, state={**h.state, "g": h.state["x"] * 0, "n": torch.tensor(0)})

    def jax(self, p, arrays, tools):
        import jax
        import jax.numpy as jnp

        def apply(x, g):
            for _ in range(6):
                x = 0.9 * x + 0.01 * g
            return x, 0 * g

        def step(s, b):
            g, n = s["g"] + jnp.tanh(s["x"] @ b["w"]), s["n"] + 1
            x, g = jax.lax.cond(n % 4 == 0, apply, lambda x, g: (x, g), s["x"], g)
            return {"x": x, "g": g, "n": n}, None

        h = self.program(arrays, tools, step, export=lambda s, _: {"x": s["x"], "g": s["g"]})
        return replace(h, state={**h.state, "g": h.state["x"] * 0, "n": jnp.int32(0)})
