"""Runs under inference mode, and returns views; honest."""

from cheats.honest import Relaxation


class InfersInInferenceMode(Relaxation):
    """x <- tanh(x @ w)."""

    def pytorch(self, p, arrays, tools):
        import torch

        @torch.inference_mode()
        def step(s, b):
            x = torch.tanh(s["x"] @ b["w"])
            return {"x": x.T.T}, x.view(-1)

        return self.program(arrays, tools, step)
