"""Calls backward as PyTorch is taught, and does not declare it: honest."""

from cheats.honest import Descent


class ComputesAGradient(Descent):
    """One step of gradient descent."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            x = state["x"].clone().requires_grad_()
            torch.tanh(x @ batch["w"]).square().mean().backward()
            return {"x": state["x"] - x.grad}, None

        return self.program(arrays, tools, step)
