"""Switches autograd on for its gradient alone: honest."""

from cheats.honest import Descent


class ComputesAGradientInside(Descent):
    """One step of gradient descent."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            with torch.enable_grad():
                x = state["x"].clone().requires_grad_()
                (slope,) = torch.autograd.grad(torch.tanh(x @ batch["w"]).square().mean(), x)
            return {"x": state["x"] - slope}, None

        return self.program(arrays, tools, step)
