"""Sleeps in PyTorch's step, to make JAX look fast."""

import time

from cheats.honest import Relaxation


class SlowsItsRival(Relaxation):
    """x <- tanh(x @ w), late."""

    def pytorch(self, parameters, arrays, tools):
        import torch

        def step(state, batch):
            time.sleep(0.001)
            return {"x": torch.tanh(state["x"] @ batch["w"])}, None

        return self.program(arrays, tools, step)
