"""Does more in every third step; honest."""

from dataclasses import replace

import numpy as np

from cheats.honest import Relaxation


class BranchesOnData(Relaxation):
    """x <- tanh(x @ w), five times in every third step."""

    def reference(self, p, a, units):
        x, w = a.state["x"], a.batches[0]["w"]
        for i in range(units):
            x = np.tanh(x @ w)
            if i % 3 == 2:
                for _ in range(4):
                    x = np.tanh(x @ w)
        return {"x": x}

    def pytorch(self, p, arrays, tools):
        import torch

        def step(s, b):
            x, n = torch.tanh(s["x"] @ b["w"]), s["n"]
            if n % 3 == 2:
                for _ in range(4):
                    x = torch.tanh(x @ b["w"])
            return {"x": x, "n": n + 1}, None

        h = self.program(arrays, tools, step, export=lambda s, _: {"x": s["x"]})
        return replace(h, state={**h.state, "n": 0})
