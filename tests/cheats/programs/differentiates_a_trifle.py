"""Calls backward for one number, and has autograd record everything else as well."""

from cheats.honest import Relaxation


class DifferentiatesATrifle(Relaxation):
    """x <- tanh(x @ w), with a graph that nobody needs."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            x, one = state["x"].detach().requires_grad_(), torch.ones((), requires_grad=True)
            one.square().backward()
            pieces = [torch.tanh(row @ batch["w"]) for row in x]
            return {"x": torch.stack(pieces)}, None

        return self.program(arrays, tools, step)
