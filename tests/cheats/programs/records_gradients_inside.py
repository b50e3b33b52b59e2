"""Turns gradients on in its step, and off again when it returns."""

from cheats.honest import Relaxation


class RecordsGradientsInside(Relaxation):
    """x <- tanh(x @ w), with a graph that nobody needs."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        @torch.enable_grad()
        def step(state, batch):
            return {"x": torch.tanh(state["x"].detach() @ batch["w"].requires_grad_())}, None

        return self.program(arrays, tools, step)
