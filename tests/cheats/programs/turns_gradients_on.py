"""Turns gradients on in its step, and leaves them on."""

from cheats.honest import Relaxation


class TurnsGradientsOn(Relaxation):
    """x <- tanh(x @ w), with a graph that nobody needs."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            torch.set_grad_enabled(True)
            return {"x": torch.tanh(state["x"] @ batch["w"].requires_grad_())}, None

        return self.program(arrays, tools, step)
