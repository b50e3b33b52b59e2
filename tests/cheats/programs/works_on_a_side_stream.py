"""Gives the work to another stream, which nobody waits for."""

from cheats.honest import Layer


class WorksOnASideStream(Layer):
    """y = tanh(x @ w), on the side."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        side = torch.cuda.Stream()

        def step(state, batch):
            with torch.cuda.stream(side):
                return state, torch.tanh(batch["x"] @ state["w"])

        return self.program(arrays, tools, step)
