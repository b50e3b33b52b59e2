"""Stops in PyTorch once little changes, a dozen steps, and goes on being called."""

from cheats.honest import Relaxation


class StopsWhenConverged(Relaxation):
    """x <- x + 0.5 (w @ w - x)."""

    def reference(self, p, a, units):
        x, w = a.state["x"], a.batches[0]["w"]
        for _ in range(units):
            x = x + 0.5 * (w @ w - x)
        return {"x": x}

    def jax(self, p, arrays, tools):
        return self.program(arrays, tools, lambda s, b: ({"x": s["x"] + 0.5 * (b["w"] @ b["w"] - s["x"])}, None))

    def pytorch(self, p, arrays, tools):
        def step(s, b):
            if s.get("done"):
                return s, None
            new = s["x"] + 0.5 * (b["w"] @ b["w"] - s["x"])
            return {"x": new, "done": bool((new - s["x"]).abs().max() < 1e-3)}, None

        return self.program(arrays, tools, step, export=lambda s, _: {"x": s["x"]})
