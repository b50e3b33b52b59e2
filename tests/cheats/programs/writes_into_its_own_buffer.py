"""Gives the same memory back in every call, and fills it anew each time: fair."""

from cheats.honest import Layer


class WritesIntoItsOwnBuffer(Layer):
    """y = tanh(x @ w), into one buffer."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        y = tools.put(arrays.batches[0]["x"] * 0)

        def step(state, batch):
            torch.mm(batch["x"], state["w"], out=y)
            return state, y.tanh_()

        return self.program(arrays, tools, step)
