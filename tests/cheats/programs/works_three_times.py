"""Computes the same three times in PyTorch, where nothing removes what is superfluous."""

from cheats.honest import Relaxation


class WorksThreeTimes(Relaxation):
    """x <- tanh(x @ w), with the product written out where it is needed."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            up, down = torch.exp(state["x"] @ batch["w"]), torch.exp(-(state["x"] @ batch["w"]))
            same = (state["x"] @ batch["w"]).isfinite()
            return {"x": torch.where(same, (up - down) / (up + down), 0)}, None

        return self.program(arrays, tools, step)
